// SPDX-License-Identifier: Apache-2.0
// Names of tensors ("Tensor Name Hash", readings M9, M12). The file holds only hashes, so the only known names are
// those that the specification lists for the model's layers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/slm/layout.h"
#include "weighbridge/model.h"

namespace weighbridge::slm_format {

// FNV-1a, 64 bits.
constexpr std::uint64_t name_hash(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

enum class Role : std::uint8_t {
  tok_embeddings,
  norm,
  output,
  attention_norm,  // from here on, one per layer
  ffn_norm,
  wq,
  wk,
  wv,
  wo,
  w1,
  w2,
  w3
};
inline constexpr std::uint32_t kModelRoles = 3, kLayerRoles = 9;

// The dimensions that the header requires; rank 1 if `columns` is 0 ("Required Tensor Shapes").
struct Dims {
  std::uint64_t rows = 0, columns = 0;
  bool operator==(const Dims&) const = default;
};
Dims dims_of(Role, const Header&) noexcept;
std::string spell(Dims);  // "[260, 8]"

std::string spell(Role, std::uint32_t layer);  // "layers.3.wq.weight"
std::string spell_hash(std::uint64_t hash);    // "#" and 16 hexadecimal digits: a name that is only a hash
std::optional<std::uint64_t> parse_hash(std::string_view name) noexcept;  // inverse of spell_hash, else nullopt

struct Known {
  std::uint64_t hash = 0;
  std::uint32_t layer = 0;
  Role role = Role::tok_embeddings;
  bool alias = false;  // layers.N.attn_norm.weight
};

// The .slm name for a tensor with a Hugging Face name, "model.layers.3.self_attn.q_proj.weight", with or without
// "model.".
struct Respelled {
  std::string name;         // "layers.3.wq.weight"
  bool half_split = false;  // the rotation pairs rows of a head's two halves, not neighboring rows (reading M9)
};
std::optional<Respelled> from_hugging_face(std::string_view name);
// Whether this is the name of the bias of one of the model's tensors: "model.layers.3.self_attn.q_proj.bias".
bool is_bias(const Model&, std::string_view name);
// Whether this names a table of the rotation, which rope_theta determines.
bool is_rotary_table(std::string_view name) noexcept;
// N of "layers.N. ..." or "model.layers.N. ...".
std::optional<std::uint32_t> layer_of(std::string_view name) noexcept;
// The model's tensor with this role, under either name.
std::optional<Tensor> find_role(const Model&, Role, std::uint32_t layer);

// Finds the names of a model with `layers` layers by their hashes. The caller bounds `layers` by the size of its file.
class KnownNames {
 public:
  explicit KnownNames(std::uint32_t layers);
  const Known* find(std::uint64_t hash) const noexcept;  // null: unknown
  // The model's name for a tensor with this hash.
  std::string name(std::uint64_t hash) const;
  // A dense index for each known tensor. An alias shares the index of the name that it replaces.
  static std::size_t place(const Known& known) noexcept { return place(known.role, known.layer); }
  static std::size_t place(Role role, std::uint32_t layer) noexcept {
    const auto r = static_cast<std::size_t>(role);
    return r < kModelRoles ? r : r + std::size_t{kLayerRoles} * layer;
  }
  std::size_t places() const noexcept { return kModelRoles + std::size_t{kLayerRoles} * layers_; }
  std::uint32_t layers() const noexcept { return layers_; }

 private:
  void add(std::string_view name, Role, std::uint32_t layer, bool alias);
  std::uint32_t layers_;
  std::vector<Known> known_;  // sorted by hash
};

}  // namespace weighbridge::slm_format

// SPDX-License-Identifier: Apache-2.0
// weighbridge/convert.h: any model into any container. A conversion is judged before a byte is written: the writer's
// own layout function makes the Plan from metadata alone, execute() lays out exactly that, and read-back compares
// exactly that.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"

namespace weighbridge {

//   blocker  the target cannot be written by any option. Never allowed.
//   loss     a reader of the output cannot get it back. Needs its kind in Options::allow.
//   change   recomputed or respelt, recoverable (digest, row-major, little-endian, decompressed). Listed, never blocks.
enum class LossKind : std::uint8_t {
  attribute,
  attribute_type,
  extra,
  tokenizer,
  name,
  shape,
  layout,
  dtype,
  precision,
  alias,
  unsupported
};
inline constexpr std::size_t kLossKindCount = 11;
std::string_view name(LossKind) noexcept;  // "attribute", "attribute-type", ...
std::optional<LossKind> loss_kind_from_name(std::string_view) noexcept;

struct Item {
  LossKind kind;
  std::string subject;   // tensors["w"].parts["data"], attributes["k"]
  std::string from, to;  // what it is, what becomes of it; lower case, no full stop
  bool operator==(const Item&) const = default;
};

struct Options {
  std::vector<LossKind> allow{};
  DType cast =
      DType::unknown;      // cast every floating-point tensor to this dtype; consent to the dtype and precision loss
  std::string quantise{};  // a quantisation of the target; consent likewise
  std::string encoding{};  // "raw", "zstd"; empty: raw, or as stored when source and target are the same container
  int level = 0;           // of the encoding; 0: its usual one
  std::string digest{};    // "none", "sha256", "crc32c"; empty: none, or as stored when stored bytes go over verbatim
  std::string
      version{};  // of the target container ("1.2" for zt); empty: the source's where it fits, else the usual one
  bool replace = false;  // an existing output
  // SLM: quantise norms too; keep fewer key and value heads than query heads, padded with zero rows (reading M8).
  bool quantise_norms = false, keep_gqa = false;
  bool omit_layout_field = false;  // zt0: entries without `layout`, as the 0.1 text has them
  // EMBD: metadata where the source has none, or in place of its own.
  std::string created_at{}, model_name{}, model_version{};
};

class Plan {
 public:
  std::vector<Item> blockers, losses, changes;
  std::uint64_t output_size = 0;  // exact, except with an encoding: then an upper bound
  bool output_size_exact = true;
  std::uint64_t payload_size = 0;  // logical bytes to move
  std::uint32_t tensors = 0;
  std::string_view from, to;  // names of the formats
  Options options;

  // The losses whose kinds are not in options.allow.
  std::vector<Item> refused() const;
  bool possible() const { return blockers.empty() && refused().empty(); }
  // [reads] temporary beside `path`, stream, fsync, reopen, compare, rename, fsync folder. Throws Error{misuse} when
  // !possible(), when path exists without options.replace, or when path is the input by any link.
  void execute(const std::string& path, const Context& = {}) const;

 private:
  friend class PlanMaker;
  std::shared_ptr<const void> rep_;  // the layout, and the Model it speaks of
};

Plan plan(const Model&, std::string_view format,
          const Options& = {});  // misuse: unknown format, one that is read only, options it lacks
// plan + execute to the format that the path's extension names; a path that ends in / is a Hugging Face folder.
void save(const Model&, const std::string& path, const Options& = {}, const Context& = {});

// A new file in the container of `target` (which must be able to append) with the objects of `more` behind the old
// ones. The old bytes are shared or copied, never rewritten. A blocker: a name that both have.
Plan plan_append(const Model& target, const Model& more, const Options& = {});

}  // namespace weighbridge

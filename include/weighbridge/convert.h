// SPDX-License-Identifier: Apache-2.0
/// \file
/// Any model into any container. A conversion is judged before a byte is written: the writer's own layout function
/// makes the Plan from metadata alone, execute() lays out exactly that, and read-back compares exactly that.
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

/// What an Item is about. The same kinds serve all three lists of a Plan:
/// - a blocker: the target cannot be written by any option. Never allowed.
/// - a loss: a reader of the output cannot get it back. Needs its kind in Options::allow.
/// - a change: recomputed or respelt, recoverable (digest, row-major, little-endian, decompressed). Listed, never
/// blocks.
enum class LossKind : std::uint8_t {
  attribute,       ///< a metadata value
  attribute_type,  ///< its type, where a text of it remains
  extra,           ///< unknown keys, and digests of parts
  tokenizer,       ///< the vocabulary
  name,            ///< of a tensor
  shape,           ///< of a tensor
  layout,          ///< how elements are stored: sparse, quantized, strided, compressed, in which byte order
  dtype,           ///< the type of elements
  precision,       ///< their values, rounded
  alias,           ///< that two tensors share their bytes
  unsupported      ///< elements that this build cannot interpret: the tensor is left out
};
inline constexpr std::size_t kLossKindCount = 11;                        ///< enumerators of LossKind
std::string_view name(LossKind) noexcept;                                ///< "attribute", "attribute-type", ...
std::optional<LossKind> loss_kind_from_name(std::string_view) noexcept;  ///< as name() spells it

/// One thing that a conversion cannot carry over as it is.
struct Item {
  LossKind kind;        ///< which consent it needs, where it is a loss
  std::string subject;  ///< tensors["w"].parts["data"], attributes["k"]
  std::string from;     ///< what it is; lower case, no full stop
  std::string to;       ///< what becomes of it, likewise
  bool operator==(const Item&) const = default;
};

/// What .slm takes and no other container.
struct SlmOptions {
  bool quantize_norms = false;  ///< with Options::quantize: quantize norms too
  bool keep_gqa = false;        ///< keep fewer key and value heads than query heads, padded with zero rows (reading M8)
  bool operator==(const SlmOptions&) const = default;
};

/// What zTensor 0.1 takes and no other container.
struct Zt0Options {
  bool omit_layout_field = false;  ///< entries without `layout`, as the 0.1 text has them
  bool operator==(const Zt0Options&) const = default;
};

/// What EMBD and Hugging Face folders take: metadata where the source has none, or in place of its own.
struct MetadataOptions {
  std::string created_at{};     ///< an ISO 8601 time; empty: not asked for, as in the two below
  std::string model_name{};     ///< UTF-8
  std::string model_version{};  ///< UTF-8
  bool operator==(const MetadataOptions&) const = default;
};

/// What safetensors and Hugging Face folders take: how the tensors are divided among files.
struct ShardOptions {
  /// The most bytes of tensors in one file; a larger tensor has a file of its own. The output is then a folder, its
  /// files called and indexed as huggingface_hub does it. 0: one file.
  std::uint64_t max_size = 0;
  bool operator==(const ShardOptions&) const = default;
};

/// What a caller asks of a conversion, and which losses are consented to. What one container alone takes stands in a
/// struct of its own, and is misuse for another target:
/// `plan(model, "slm", {.quantize = "q8_0", .slm = {.keep_gqa = true}})`.
struct Options {
  std::vector<LossKind> allow{};  ///< losses to accept
  /// cast every floating-point tensor to this dtype; consent to the dtype and precision loss
  DType cast = DType::unknown;
  std::string quantize{};  ///< a quantization of the target; consent likewise
  std::string encoding{};  ///< "raw", "zstd"; empty: raw, or as stored when source and target are the same container
  int level = 0;           ///< of the encoding; 0: its usual one
  std::string digest{};    ///< "none", "sha256", "crc32c"; empty: none, or as stored when stored bytes go over verbatim
  /// of the target container ("1.2" for zt); empty: the source's where it fits, else the usual one
  std::string version{};
  bool replace = false;        ///< an output that exists
  SlmOptions slm{};            ///< for .slm
  Zt0Options zt0{};            ///< for zTensor 0.1
  MetadataOptions metadata{};  ///< for EMBD and Hugging Face folders
  ShardOptions shards{};       ///< for safetensors and Hugging Face folders

  /// The highest `level`: beyond it one encoder takes more memory than a whole job may.
  static constexpr int kHighestLevel = 19;
  /// Sets an option by its name and what people write for it.
  /// @param option "allow" (kinds of loss with commas between them, which are added), "cast", "encoding", "digest",
  ///   "quantize", or what FormatInfo::options of some format names ("keep-gqa"; a switch is "true" or "false").
  /// @throws Error misuse: another option, or none of its words; the sentence names them.
  void set(std::string_view option, std::string_view text);
  /// The words that set() takes for an option, in whichever container; empty for one that takes any text, and for
  /// another option.
  static std::vector<std::string_view> words(std::string_view option);
};

namespace convert {
struct PlanRep;
}  // namespace convert

/// What a conversion would do, known before a byte is written. Immutable: what was judged is what execute() does. A
/// copy is one reference count, and what the members refer to lives as long as any copy.
class Plan {
 public:
  Plan() noexcept = default;  ///< of nothing: execute() is misuse

  const std::vector<Item>& blockers() const& noexcept;         ///< no option helps
  const std::vector<Item>& losses() const& noexcept;           ///< a reader of the output cannot get it back
  const std::vector<Item>& changes() const& noexcept;          ///< recomputed or respelt
  const Options& options() const& noexcept;                    ///< that it was made with
  std::vector<Item> blockers() const&& { return blockers(); }  ///< of a temporary: a copy
  std::vector<Item> losses() const&& { return losses(); }      ///< likewise
  std::vector<Item> changes() const&& { return changes(); }    ///< likewise
  Options options() const&& { return options(); }              ///< likewise
  /// Bytes of the output, of all files where it is a folder; exact, or an upper bound where output_size_exact() is
  /// false.
  std::uint64_t output_size() const noexcept;
  bool output_size_exact() const noexcept;      ///< false only with an encoding
  std::uint64_t payload_size() const noexcept;  ///< logical bytes to move
  std::uint32_t tensors() const noexcept;       ///< to be written
  std::string_view from() const noexcept;       ///< name of the source's format
  std::string_view to() const noexcept;         ///< name of the target's

  /// The losses whose kinds are not in options().allow.
  std::vector<Item> refused() const;
  bool possible() const { return blockers().empty() && refused().empty(); }  ///< execute() would begin
  /// [reads] temporary beside `path`, stream, fsync, reopen, compare, rename, fsync folder. Throws Error{misuse} when
  /// !possible(), when path exists without options().replace, or when path is the input by any link.
  void execute(const std::string& path, const Context& = {}) const;

 private:
  friend class PlanMaker;
  std::shared_ptr<const convert::PlanRep> rep_;
};

/// What converting to `format` would do. Misuse: an unknown format, one that is read only, options that it lacks. Reads
/// no payload but `embeddings.position_ids` for EMBD (reading E14), where it may throw as what is marked [reads] does.
Plan plan(const Model&, std::string_view format, const Options& = {});
/// [reads] plan() and Plan::execute() to the format that the path's extension names; a path that ends in / is a Hugging
/// Face folder.
void save(const Model&, const std::string& path, const Options& = {}, const Context& = {});

/// A new file in the container of `target` (which must be able to append) with the objects of `more` behind the old
/// ones. The old bytes are shared or copied, never rewritten. A blocker: a name that both have.
Plan plan_append(const Model& target, const Model& more, const Options& = {});

}  // namespace weighbridge

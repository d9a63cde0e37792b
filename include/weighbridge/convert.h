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
  unsupported      ///< elements that this build cannot interpret
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

/// What a caller asks of a conversion, and which losses are consented to.
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
  bool replace = false;         ///< an output that exists
  bool quantize_norms = false;  ///< SLM: quantize norms too
  bool keep_gqa = false;  ///< SLM: keep fewer key and value heads than query heads, padded with zero rows (reading M8)
  bool omit_layout_field = false;  ///< zt0: entries without `layout`, as the 0.1 text has them
  /// EMBD and folders: metadata where the source has none, or in place of its own; an ISO 8601 time
  std::string created_at{};
  std::string model_name{};     ///< likewise
  std::string model_version{};  ///< likewise

  /// The highest `level`: beyond it one encoder takes more memory than a whole job may.
  static constexpr int kHighestLevel = 19;
  /// Sets an option by its name and what people write for it.
  /// @param option "allow" (kinds of loss with commas between them, which are added), "cast", "encoding", "digest" or
  ///   "quantize".
  /// @throws Error misuse: another option, or none of its words; the sentence names them.
  void set(std::string_view option, std::string_view text);
  /// The words that set() takes for an option, in whichever container; empty for another option.
  static std::vector<std::string_view> words(std::string_view option);
};

/// What a conversion would do, known before a byte is written.
class Plan {
 public:
  std::vector<Item> blockers;      ///< no option helps
  std::vector<Item> losses;        ///< a reader of the output cannot get it back
  std::vector<Item> changes;       ///< recomputed or respelt
  std::uint64_t output_size = 0;   ///< exact, except with an encoding: then an upper bound
  bool output_size_exact = true;   ///< false: output_size is an upper bound
  std::uint64_t payload_size = 0;  ///< logical bytes to move
  std::uint32_t tensors = 0;       ///< to be written
  std::string_view from;           ///< name of the source's format
  std::string_view to;             ///< name of the target's
  Options options;                 ///< that it was made with

  /// The losses whose kinds are not in options.allow.
  std::vector<Item> refused() const;
  bool possible() const { return blockers.empty() && refused().empty(); }  ///< execute() would begin
  /// [reads] temporary beside `path`, stream, fsync, reopen, compare, rename, fsync folder. Throws Error{misuse} when
  /// !possible(), when path exists without options.replace, or when path is the input by any link.
  void execute(const std::string& path, const Context& = {}) const;

 private:
  friend class PlanMaker;
  std::shared_ptr<const void> rep_;  // the layout, and the Model it speaks of
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

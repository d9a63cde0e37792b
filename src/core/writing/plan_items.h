// SPDX-License-Identifier: Apache-2.0
// Plan items that several writers share: what is dropped from a tensor, and what changes when a tensor becomes dense,
// is cast or is copied. Each writer adds the items for its own container.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/plan_text.h"
#include "core/payload/elements.h"
#include "core/payload/extents.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"

namespace weighbridge::core {

// Adds to the blockers, losses and changes of a layout, which must outlive it.
class PlanItems {
 public:
  explicit PlanItems(WriteLayout& out) : out_(out) {}
  void block(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.blockers.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  // Adds a blocker: the tensor cannot be stored because `what` (itself or a part) cannot be interpreted.
  void block_uninterpreted(const Tensor& tensor, std::string what, std::string from, std::string why) {
    out_.uninterpreted.push_back({tensor.index(), from, why});
    block(LossKind::unsupported, std::move(what), std::move(from), std::move(why));
  }
  void lose(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.losses.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  void change(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.changes.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }

 private:
  WriteLayout& out_;
};

// The dtype in the output: floating-point tensors follow Options::cast.
DType target_dtype(const Tensor&, const Options&);

// Lists the unknown keys as losses, for containers that cannot hold them.
void drop_extra(PlanItems, const Model&);
void drop_extra(PlanItems, const Tensor&);
void drop_extra(PlanItems, const Tensor&, const Part&);
// Attributes that only describe the packing of a quantized tensor are not listed: the loss of its layout covers them.
void drop_attributes(PlanItems, const Tensor&);
// Lists the metadata as losses, for containers that have none; `why` says so.
void drop_attributes(PlanItems, const Model&, std::string_view why);
// Lists the tokenizer as a loss, if there is one: "NumPy has" no place for it.
void drop_tokenizer(PlanItems, const Model&, std::string_view container_has);

// False, with a blocker, if the tensor's type or shape is unknown: "NumPy states every shape".
bool check_known(PlanItems, const Tensor&, std::string_view container);
// Lists what changes in a tensor that is written as one raw, row-major, little-endian part of `dtype`.
void check_dense(PlanItems, const Tensor&, DType dtype, std::string_view no_digest = "no digest");
void check_cast(PlanItems, const Tensor&, DType to);

// Lists the tensors among these that share some or all bytes with another; each is written separately.
void name_copies(PlanItems, const Model&, std::span<const std::uint32_t> tensors);
void name_copies(PlanItems, const Model&);  // of all tensors
// The loss for a tensor that gets its own copy of shared bytes: all bytes shared, or only some. Partial overlaps are
// never written (reading G6 makes them a warning).
void name_copy(PlanItems, const Tensor&, const Tensor& of);
void name_partial_copy(PlanItems, const Tensor&, const Tensor& with);

// Lists what changes in the encoding of a part that is stored anew.
void check_encoding(PlanItems, const Tensor&, const Part&, Encoding to);

// What the planners of all formats begin with: the model, the options, and the layout that they make.
class Planning {
 public:
  Planning(const Model& model, const Options& options) : model_(model), options_(options) {
    out_.owner = std::make_shared<const Model>(model);
  }

 protected:
  ~Planning() = default;
  DType target_dtype(const Tensor& tensor) const { return core::target_dtype(tensor, options_); }
  // Of containers that also hold sparse and quantized tensors: these would become dense, which the caller did not ask
  // for, so only dense ones are cast. unknown: it is not cast.
  DType cast_of(const Tensor&) const;

  const Model& model_;
  const Options& options_;
  WriteLayout out_;
  PlanItems plan_items_{out_};
};

// The bound on sums of sizes, which leaves room for an index below 2^64.
inline constexpr std::uint64_t kMaxSum = UINT64_MAX - (std::uint64_t{1} << 40);

// For containers that store payloads one after another, each at a multiple of its alignment, and parts with the same
// bytes once. Parts that only share bytes become copies, which are listed. Parts have the numbers of Extents::of().
class PlacingPlanning : public Planning {
 protected:
  enum class Subject : std::uint8_t { tensor, part };  // of what is lost
  PlacingPlanning(const Model& model, const Options& options, Subject subject)
      : Planning(model, options), subject_(subject) {}
  ~PlacingPlanning() = default;
  // Call before the two below, if there is no blocker. Payloads lie from `at` on.
  void begin_payloads(std::uint64_t at);
  // The number of the payload that this part can share. `one_blob`: parts with one extent have the same stored bytes,
  // even if their types differ.
  std::optional<std::uint32_t> shared_payload(const Payload&, std::uint32_t part, bool one_blob = false);
  // Places a payload after the others. nullopt, and a blocker, if the file would exceed 2^64 bytes.
  std::optional<std::uint32_t> append_payload(Payload, std::uint32_t part);

  std::vector<std::uint32_t> payload_of_;  // the payload of each part of the model; kNone: none yet

 private:
  std::string subject_of(const Payload&) const;

  const Subject subject_;
  std::uint64_t at_ = 0;
  Sharing sharing_;
};

// The index of Tensor::main() among the tensor's parts.
std::uint32_t main_part(const Tensor&);
// The payload of a tensor that is written dense: `size` bytes of `dtype`, belonging to the next tensor of `out`.
Payload dense_payload(const WriteLayout& out, const Tensor&, DType dtype, std::uint64_t size);

// Applies Options::encoding to a payload with known logical_size, and sets its maximum stored size. An empty payload
// stays raw.
void encode_payload(Payload&, const Options&);
// "raw"; "zstd, compressed anew" if the part was compressed that way already.
std::string encoding_text(const Part& from, Encoding to);

// The name of the type of an attribute that becomes text.
std::string type_text(const Value&);
// Whether a container of texts can hold the value under this key; `text` is its text.
bool can_be_text(std::string_view key, const Value&, std::string_view text);

// Where the layout's payloads will be stored, from `at` on; `end` is the offset after the last. If sizes are only upper
// bounds, offsets are chosen so that their texts have the maximum length.
struct PlannedPayloads {
  std::vector<Stored> stored;
  std::uint64_t end = 0;
};
PlannedPayloads plan_payloads(const WriteLayout&, std::uint64_t at);

// Makes the payload `made`: of the bytes of these elements, by make_range if they divide, else by make.
void fill_with(Payload&, const ElementsPtr&);

}  // namespace weighbridge::core

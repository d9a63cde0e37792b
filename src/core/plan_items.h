// SPDX-License-Identifier: Apache-2.0
// Plan items that the writers of several containers share: what is dropped of a tensor, and what changes when a tensor
// becomes dense, is cast or is copied. Each writer adds what its own container lacks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/plan_text.h"

namespace weighbridge::core {

// The three lists of a layout, which must outlive it.
class Ledger {
 public:
  explicit Ledger(WriteLayout& out) : out_(out) {}
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

// For containers that cannot hold them.
void drop_extra(Ledger, const Model&);
void drop_extra(Ledger, const Tensor&);
void drop_extra(Ledger, const Tensor&, const Part&);
// Attributes that only describe the packing of a quantized tensor are not listed: the loss of its layout covers them.
void drop_attributes(Ledger, const Tensor&);

// False, with a blocker, if the tensor's type or shape is unknown. `states_shape` is the text that the container states
// every shape.
bool judge_known(Ledger, const Tensor&, std::string_view states_shape);
// Lists what changes in a tensor that is written as one raw, row-major, little-endian part of `dtype`.
void judge_dense(Ledger, const Tensor&, DType dtype, std::string_view no_digest = "no digest");
void judge_cast(Ledger, const Tensor&, DType to);

// Lists the tensors among these that share some or all bytes with another; each is written separately.
void name_copies(Ledger, const Model&, const std::vector<std::uint32_t>& tensors);
// For a tensor that gets a copy of bytes shared with another; for one that shared only some of them, which no container
// is written with (reading G6 makes it a warning).
void name_copy(Ledger, const Tensor&, const Tensor& of);
void name_partial_copy(Ledger, const Tensor&, const Tensor& with);

// The index of Tensor::main() among the tensor's parts.
std::uint32_t main_part(const Tensor&);
// The payload that a writer of dense tensors stores for this one: `size` bytes of `dtype`, for the next of `out`'s
// tensors.
Payload dense_payload(const WriteLayout& out, const Tensor&, DType dtype, std::uint64_t size);

// Applies Options::encoding to a payload with known logical_size, and sets its maximum stored size. An empty payload
// stays raw.
void encode_payload(Payload&, const Options&);
// "raw"; "zstd, compressed anew" if the part was compressed that way already.
std::string encoding_text(const Part& from, Encoding to);

// The type of an attribute that becomes text.
std::string type_text(const Value&);
// Whether a container of texts can hold the value under this key; `text` is its text.
bool can_be_text(std::string_view key, const Value&, std::string_view text);

// The layout's payloads from `at` on, as they will be stored. If sizes are only bounds, the numbers have their maximum
// length. `end` is the offset after the last.
struct Foreseen {
  std::vector<Stored> stored;
  std::uint64_t end = 0;
};
Foreseen foresee_payloads(const WriteLayout&, std::uint64_t at);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// What the writers of several containers say alike in a plan: where its items go, what is dropped of a tensor, what is
// told where a tensor becomes dense, is cast or is copied. What one container lacks by itself is its writer's to say.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/plan_text.h"

namespace weighbridge::core {

// The three lists of a layout, which outlives it.
class Ledger {
 public:
  explicit Ledger(WriteLayout& out) : out_(out) {}
  void block(LossKind kind, std::string subject, std::string from, std::string to) {
    out_.blockers.push_back({kind, std::move(subject), std::move(from), std::move(to)});
  }
  // A tensor cannot be carried as `what` of it, itself or a part, cannot be interpreted.
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

// For containers that have no place for them.
void drop_extra(Ledger, const Model&);
void drop_extra(Ledger, const Tensor&);
void drop_extra(Ledger, const Tensor&, const Part&);
// What only says how a quantized tensor is packed goes with its layout, which is named as the loss.
void drop_attributes(Ledger, const Tensor&);

// Whether a writer can know the tensor's elements at all; false, with the blocker named, where its type or its shape is
// unknown. `states_shape`: that the container states every shape.
bool judge_known(Ledger, const Tensor&, std::string_view states_shape);
// What a tensor becomes that is written as one raw, row-major, little-endian part of `dtype`.
void judge_dense(Ledger, const Tensor&, DType dtype, std::string_view no_digest = "no digest");
void judge_cast(Ledger, const Tensor&, DType to);

// Of these tensors of the model, each written once: those that share bytes with another one, all of them or some.
void name_copies(Ledger, const Model&, const std::vector<std::uint32_t>& tensors);
// One tensor gets bytes of its own that were those of another one; that it only shared some of, which no container is
// written with: the readings call it worth a warning (G6).
void name_copy(Ledger, const Tensor&, const Tensor& of);
void name_partial_copy(Ledger, const Tensor&, const Tensor& with);

// The index of Tensor::main() among the tensor's parts.
std::uint32_t main_part(const Tensor&);
// What a writer of dense tensors stores for this one, `size` bytes of `dtype`, for the next of `out`'s tensors.
Payload dense_payload(const WriteLayout& out, const Tensor&, DType dtype, std::uint64_t size);

// Options::encoding for a payload whose logical_size is known, with what it may take in the file. One without bytes
// gains nothing from a frame and stays raw.
void encode_payload(Payload&, const Options&);
// "raw"; "zstd, compressed anew" where the part was compressed that way before.
std::string encoding_text(const Part& from, Encoding to);

// What an attribute was that becomes text.
std::string type_text(const Value&);
// `text` is what the value spells; whether a container of texts can hold it under this key.
bool can_be_text(std::string_view key, const Value&, std::string_view text);

// The layout's payloads from `at` on as they will be stored or, where sizes are bounds only, with numbers as long as
// they can become; `end` is where they end.
struct Foreseen {
  std::vector<Stored> stored;
  std::uint64_t end = 0;
};
Foreseen foresee_payloads(const WriteLayout&, std::uint64_t at);

}  // namespace weighbridge::core

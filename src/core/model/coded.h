// SPDX-License-Identifier: Apache-2.0
// Marks tensors that are codes of a quantization scheme (schemes/), or that complete such codes. The marks are set when
// a model is made, and views keep them under any names: no selection or renaming turns codes into plain numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schemes/recognize.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

struct State;

struct Coded {
  std::string_view id;           // schemes::Scheme::id
  std::string name;              // for people
  bool codes = false;            // false: it completes codes
  std::string why{};             // in a model of numbers: why they are not decoded
  Hint hint{};                   // likewise
  std::uint64_t parameters = 0;  // how many numbers the codes stand for, if names and shapes say so
  // The tensor that states their shape; null if none does.
  std::shared_ptr<const Source> shape_source{};
  std::uint64_t shape_offset = 0, shape_length = 0;
  DType shape_dtype = DType::unknown;
};

// Null: the elements are values.
const Coded* coded(const Tensor&) noexcept;
// Whether its elements mean nothing by themselves: codes, and integers that complete them. Scales are plain numbers.
bool is_codes(const Tensor&) noexcept;
// Throws Error{unsupported} with rule "unsupported/scheme" if is_codes(): `what` cannot be done with them.
void require_values(const Tensor&, std::string_view what);
// The same for the first tensor of the model that belongs to a scheme, with rule "<rule>/scheme".
void require_values(const Model&, std::string_view what, std::string_view rule);
// [reads] Coded::parameters, or what the tensor with the shape says.
std::uint64_t parameters_of(const Coded&);

// What the user says of quantization schemes. It lives as long as a handle.
std::span<const schemes::Answer> answers_of(const Model&) noexcept;

// What its metadata say about quantization.
schemes::Config quantization_of(const Model&);

// A scheme that a model uses.
struct CodedUse {
  std::string scheme, first;  // for people; the name of the first tensor
  std::uint64_t tensors = 0;  // codes, and what completes them
  bool codes = false;         // `first` is codes, not what completes them
};
// Found by the marks, and by the names that the model has now.
std::vector<CodedUse> uses_of_codes(const Model&);

// Marks the tensors of a model under construction, whose by_name is complete.
void mark_codes(State&);
// Calls take() for each tensor of codes that would not be recognized as such in a copy with the model's names and
// metadata.
void for_each_forgotten(const Model&, const std::function<void(const Tensor&)>& take);

}  // namespace weighbridge::core

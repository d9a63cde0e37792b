// SPDX-License-Identifier: Apache-2.0
// Tensors that are codes of a scheme (schemes/), or that complete such codes. A model's tensors are marked when it is
// made; views keep the marks under any names, so that no selection and no renaming makes numbers out of codes.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

struct State;

struct Coded {
  std::string_view id;           // schemes::Scheme::id
  std::string name;              // for people
  bool codes = false;            // else it completes codes
  std::uint64_t parameters = 0;  // the numbers that the codes stand for, as far as names and shapes tell
  // The tensor that says their shape; null if none does.
  std::shared_ptr<const Source> shape_source{};
  std::uint64_t shape_offset = 0, shape_length = 0;
  DType shape_dtype = DType::unknown;
};

// Null: the elements are values.
const Coded* coded(const Tensor&) noexcept;
// Whether its numbers say nothing by themselves: codes, and integers that complete them. Scales are numbers.
bool is_codes(const Tensor&) noexcept;
// Throws Error{unsupported} with rule "unsupported/scheme" if is_codes(): `what` cannot be done with them.
void require_values(const Tensor&, std::string_view what);
// The same for the first tensor of the model that belongs to a scheme, with rule "<rule>/scheme".
void require_values(const Model&, std::string_view what, std::string_view rule);
// [reads] Coded::parameters, or what the tensor with the shape says.
std::uint64_t parameters_of(const Coded&);

// A scheme that a model uses.
struct CodedUse {
  std::string scheme, first;  // for people; the name of the first tensor
  std::uint64_t tensors = 0;  // codes, and what completes them
  bool codes = false;         // `first` is codes, not what completes them
};
// By the marks, and by the names that the model has now.
std::vector<CodedUse> uses_of_codes(const Model&);

// Marks the tensors of a model under construction, whose by_name is complete.
void mark_codes(State&);
// Calls take() for each tensor of codes that a copy with the model's names and metadata would not show as such.
void for_each_forgotten(const Model&, const std::function<void(const Tensor&)>& take);

}  // namespace weighbridge::core

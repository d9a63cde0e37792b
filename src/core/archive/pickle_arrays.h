// SPDX-License-Identifier: Apache-2.0
// What pickles say of NumPy's types, and the arrays that joblib writes between the opcodes of a pickle. Sources:
// numpy/_core/src/multiarray/descriptor.c (arraydescr_reduce), joblib/numpy_pickle.py.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/numpy_types.h"
#include "wire/pickle.h"

namespace weighbridge::core {

// The text of a value; nullopt: it is not one, or too long to be kept.
std::optional<std::string_view> pickled_text(const wire::Pickle&, wire::Pickle::Ref);
// A whole number that is not negative.
std::optional<std::uint64_t> pickled_count(const wire::Pickle&, wire::Pickle::Ref);
// Those of a tuple, list or torch.Size.
std::optional<std::vector<std::uint64_t>> pickled_counts(const wire::Pickle&, wire::Pickle::Ref);
// The value of a key of a dict.
std::optional<wire::Pickle::Ref> pickled_member(const wire::Pickle&, wire::Pickle::Ref dict, std::string_view key);

// A type of NumPy, from an object numpy.dtype.
struct PickledType {
  std::string name{};  // with its byte order: "<f4"
  NumpyWord word{.holds = NumpyWord::Holds::others};
  bool big() const noexcept { return word.order == Order::big; }
  std::optional<std::uint64_t> bytes{};  // of an element, also where it is no number; nullopt: not known
};
std::optional<PickledType> pickled_type(const wire::Pickle&, wire::Pickle::Ref);

// An array whose elements follow the state of a joblib.numpy_pickle.NumpyArrayWrapper.
struct JoblibArray {
  PickledType type{};
  std::vector<std::uint64_t> shape{};
  bool fortran = false;
};
std::optional<JoblibArray> joblib_array(const wire::Pickle&, wire::Pickle::Ref object);
// The bytes of its elements, or the pickle of its objects, which follow `at` (wire::PickleInput::data).
std::optional<wire::PickleData> joblib_data(const wire::PickleInput&, const wire::Pickle&, wire::Pickle::Ref object,
                                            std::uint64_t at);

}  // namespace weighbridge::core

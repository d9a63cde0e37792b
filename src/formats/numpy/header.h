// SPDX-License-Identifier: Apache-2.0
// The header of an array: read with a grammar of its own, never evaluated; and written as numpy.save() does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/numpy_types.h"
#include "core/reading/field_notes.h"
#include "formats/numpy/layout.h"
#include "formats/numpy/rules.h"
#include "weighbridge/model.h"

namespace weighbridge::numpy {

struct Header {
  std::uint64_t data_at = 0;                                      // bytes before the elements
  core::NumpyWord word{.holds = core::NumpyWord::Holds::others};  // of a structured type: others
  DType dtype = DType::unknown;                                   // unknown: elements that cannot be read
  bool fortran = false;                                           // the first dimension is the fastest
  std::vector<std::uint64_t> shape{};
  std::string type{};                 // of the elements, as the file has it
  const Rule* unsupported = nullptr;  // why the elements cannot be read
  // Whether the elements are a pickle. With a structured type they may be one: a text in it names the type of objects,
  // or is the name of a field.
  bool objects = false;
};

// Why a header is refused. `at` counts from the first byte of the array.
struct Fault {
  const Rule* rule = nullptr;
  std::uint64_t at = 0;
  core::Said expected{}, found{};
};

// The number of bytes before the elements, computed from the first kPreamble2 bytes; nullopt: this is not an array.
std::optional<std::uint64_t> bytes_before_elements(std::string_view first) noexcept;
// Those bytes. front(n) returns the first n bytes of the array, or all if there are fewer.
template <class Front> std::string up_to_elements(Front front) {
  constexpr std::size_t kFirst = 256;  // nearly every header is shorter
  std::string bytes = front(kFirst);
  const auto wanted = bytes_before_elements(bytes);
  if (wanted && *wanted > bytes.size() && bytes.size() == kFirst) bytes = front(static_cast<std::size_t>(*wanted));
  return bytes;
}
// Reads the header. `bytes` begins with the array and has at least bytes_before_elements() bytes, unless the array ends
// earlier. Adds the fields to the notes, if there are any.
std::optional<Header> read_header(std::string_view bytes, const ArrayRules&, Fault&, core::FieldNotes* = nullptr);

// The bytes of the elements; nullopt if they are 2^63 or more. Like NumPy, ignores zero dimensions in that check.
std::optional<std::uint64_t> size_of(DType, Shape) noexcept;
// The strides of an array in Fortran order, in elements; empty if they are those of a row-major array.
std::vector<std::int64_t> fortran_strides(Shape);

// The header that numpy.save() writes: magic, version 1.0, length and dictionary, padded so that the elements begin at
// a multiple of 64. Its length does not depend on the first dimension.
std::string write_header(std::string_view type, Shape);

}  // namespace weighbridge::numpy

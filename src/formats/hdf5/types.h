// SPDX-License-Identifier: Apache-2.0
// Datatypes and dataspaces: the type and number of elements in a dataset or an attribute. Specification IV.A.2.b and
// IV.A.2.d.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/file.h"
#include "weighbridge/model.h"

namespace weighbridge::hdf5 {

struct Datatype {
  Class kind{};
  std::uint64_t size = 0;        // of an element, in bytes
  DType dtype = DType::unknown;  // of a number, complex number or boolean
  Order order = Order::little;
  std::string name{};          // for people: "text of 8 bytes", "opaque"
  bool variable_text = false;  // a text of any length, in the global heap
  std::uint8_t padding = 0;    // of a text: 0 ends with a zero byte, 1 is filled with zeros, 2 with spaces
};
// Throws Broken.
Datatype read_datatype(Cursor);
// Of opaque elements of this size, by the name that Keras gives them in an attribute; unknown for any other.
DType opaque_dtype(std::string_view name, std::uint64_t size) noexcept;

struct Dataspace {
  bool null = false;
  std::vector<std::uint64_t> shape{};
  std::vector<std::uint64_t> maximum{};  // the largest extents; kUndefined: no limit
};
Dataspace read_dataspace(Cursor);

}  // namespace weighbridge::hdf5

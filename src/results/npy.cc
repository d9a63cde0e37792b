// SPDX-License-Identifier: Apache-2.0
// The NumPy header, by the reader and writer of the format.
#include "weighbridge/npy.h"

#include "core/model/numpy_types.h"
#include "formats/numpy/header.h"

namespace weighbridge {

std::string_view npy_type(DType dtype) noexcept {
  const core::NumpyType* const type = core::numpy_type(dtype);
  return type == nullptr ? std::string_view() : type->text;
}

std::string_view ml_dtype(DType dtype) noexcept {
  const core::NumpyType* const type = core::numpy_type(dtype);
  return type == nullptr ? std::string_view() : type->ml_dtype;
}

std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape) {
  return numpy::write_header(type, shape);
}

}  // namespace weighbridge

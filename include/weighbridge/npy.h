// SPDX-License-Identifier: Apache-2.0
/// \file
/// The header of a NumPy file, format 1.0. Callers write a tensor's elements after it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weighbridge/dtype.h"

namespace weighbridge {

/// NumPy's type string for little-endian elements: "<f4". Types that NumPy lacks become void items of the same size, as
/// ml_dtypes saves them: "<V2" for bf16, "<V1" for the f8 kinds. Exception: f8_e5m2 is "|V1", because numpy.load()
/// refuses the "<f1" of ml_dtypes. Empty for elements smaller than a byte, which no .npy file can hold.
std::string_view npy_type(DType) noexcept;
/// The ml_dtypes type to view a void item as; empty if NumPy has the type itself.
std::string_view ml_dtype(DType) noexcept;
/// The bytes that numpy.save() writes before the elements of a row-major array: magic, version, length and dictionary,
/// padded so that the elements begin at a multiple of 64. The length does not depend on the first dimension.
std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape);

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Elements of one dtype to another. Owns which conversions exist and how they round; whether a loss is allowed is the
// caller's.
//
// Which exist (can_cast):
//   equal dtypes             bytes copied; bool made 0 or 1
//   bool, integer -> integer where every value fits, else `range` with the first index that does not
//   bool, integer -> bool    where every value is 0 or 1, else `range`
//   bool, integer -> real    nearest, ties to even
//   real -> real             nearest, ties to even, rounded once from the source (f64 -> f16 never by way of f32)
//   complex -> complex       component by component
// Refused: real or complex to integer or bool, between complex and anything else, anything but itself to f8_e8m0 (a
// scale has neither sign nor zero), unknown. Overflow: infinity in f64, f32, f16, bf16, f8_e5m2; NaN in f8_e4m3 and the
// fnuz types; the largest value in f6 and f4, which have neither (so ml_dtypes does). NaN stays NaN; f6 and f4 have
// none, so that NaN there is `nan` with its index.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

enum class CastStatus : std::uint8_t {
  ok,
  not_allowed,  // can_cast() is false
  size,         // a span is not packed_size(dtype, elements) bytes long
  range,        // an integer does not fit the target
  nan,          // a NaN, and the target has none
};

struct CastResult {
  CastStatus status = CastStatus::ok;
  std::uint64_t index = 0;  // of the element to blame, for range and nan
  bool ok() const noexcept { return status == CastStatus::ok; }
};

bool can_cast(DType from, DType to) noexcept;

// Converts `elements` packed little-endian elements, at any alignment; the spans do not overlap. Any pieces give the
// same result as the whole, if the cuts fall on whole bytes. Elements before a failing index have been written, later
// ones may be.
CastResult cast(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out,
                std::uint64_t elements) noexcept;

}  // namespace weighbridge::codecs

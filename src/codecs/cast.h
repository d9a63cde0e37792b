// SPDX-License-Identifier: Apache-2.0
// Converts elements from one dtype to another. Owns which conversions exist and how they round; callers decide which
// losses are allowed.
//
// Conversions (can_cast):
//   equal dtypes             bytes copied; bool made 0 or 1
//   bool, integer -> integer where every value fits, else `range` with the first index that does not
//   bool, integer -> bool    where every value is 0 or 1, else `range`
//   bool, integer -> real    nearest, ties to even
//   real -> real             nearest, ties to even, rounded once from the source (f64 -> f16 never by way of f32)
//   complex -> complex       component by component
// Refused: real or complex to integer or bool, between complex and anything else, anything but itself to f8_e8m0 (a
// scale has neither sign nor zero), unknown dtypes. Overflow gives infinity in f64, f32, f16, bf16, f8_e5m2; NaN in
// f8_e4m3 and the fnuz types; the largest value in f6 and f4, which have neither (as in ml_dtypes). NaN stays NaN; f6
// and f4 have none, so NaN is the fault `nan` with its index.
//
// Below: rewrites of elements that do not convert numbers, which are boolean bytes and packed codes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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
  std::uint64_t index = 0;  // of the failing element, for range and nan
  bool ok() const noexcept { return status == CastStatus::ok; }
};

// What a cast from one real dtype to another did to the values.
struct CastTally {
  std::uint64_t overflowed = 0;  // values beyond the target's range: now infinite, NaN or the largest value
  std::uint64_t flushed = 0;     // values that were not zero and are now
  double largest_error = 0;      // of the finite values that did not overflow
  void add(const CastTally& other) noexcept {
    overflowed += other.overflowed;
    flushed += other.flushed;
    largest_error = std::max(largest_error, other.largest_error);
  }
};

bool can_cast(DType from, DType to) noexcept;

// Converts `elements` packed little-endian elements, at any alignment; the spans do not overlap. Converting in pieces
// gives the same result if they are split at whole bytes. On failure, elements before the index have been written;
// later ones may have been. A tally, if there is one, is added to where both dtypes are real or complex.
CastResult cast(DType from, std::span<const std::byte> in, DType to, std::span<std::byte> out, std::uint64_t elements,
                CastTally* tally = nullptr) noexcept;

// Boolean bytes and packed codes: rewrites of elements that do not convert numbers.

// Every nonzero byte becomes 1 (readings T6, Z7).
void normalize_bools(std::span<std::byte> data) noexcept;

// Codes of `bits` (2, 4 or 6) each, packed without gaps, least significant bits first, to and from one code per byte.
// `packed` has ceil(codes.size() * bits / 8) bytes; packing fills the spare bits of the last one with 0 and ignores the
// codes' high bits.
void unpack_codes(std::uint32_t bits, std::span<const std::byte> packed, std::span<std::byte> codes) noexcept;
void pack_codes(std::uint32_t bits, std::span<const std::byte> codes, std::span<std::byte> packed) noexcept;

}  // namespace weighbridge::codecs

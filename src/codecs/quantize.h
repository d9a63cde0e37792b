// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes q8_0 and q4_0 (SLM reading M7). Owns the arithmetic of one group of values that share a scale (a
// row of q8_0, a block of q4_0); callers form the groups.
//
//   q8_0  one int8 per value, -127..127; scale = max|group| / 127
//   q4_0  four bits per value, -8..7 in two's complement, value 2k in the low nibble of byte k, 2k+1 in the high one;
//         scale = max|group| / 7
// A code is value / scale rounded to nearest, ties to even, then clamped; a value is code x scale. All in f32. A group
// whose scale would be 0 (all zeros, or too small for f32) gets scale 1. The caller has checked that values are finite.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weighbridge::codecs {

// max|values|; `so_far` is the result for earlier pieces of the group. NaN and infinity give infinity.
float largest_magnitude(std::span<const float> values, float so_far = 0) noexcept;

float q8_scale(float largest) noexcept;
float q4_scale(float largest) noexcept;

// One byte per value.
void q8_encode(std::span<const float> values, float scale, std::byte* codes) noexcept;
void q8_decode(std::span<const std::byte> codes, float scale, float* values) noexcept;
// An even number of values, one byte per two.
void q4_encode(std::span<const float> values, float scale, std::byte* codes) noexcept;
void q4_decode(std::span<const std::byte> codes, float scale, float* values) noexcept;

// The q4_0 block size for a row of `columns` values: 32 if it divides them, else the largest even divisor below 32; 0
// if there is none (q4_0 cannot hold an odd number of columns).
std::uint32_t q4_block_for(std::uint64_t columns) noexcept;

}  // namespace weighbridge::codecs

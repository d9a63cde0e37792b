// SPDX-License-Identifier: Apache-2.0
// q8_0 and q4_0 codes, both ways (SLM reading M7). Owns the arithmetic of one group of values that share a scale (a row
// of q8_0, a block of q4_0); which values form a group is the caller's.
//
//   q8_0  one int8 a value, -127..127; scale = max|group| / 127
//   q4_0  four bits a value, -8..7 in two's complement, value 2k in the low nibble of byte k, 2k+1 in the high one;
//         scale = max|group| / 7
// A code is value / scale rounded to nearest, ties to even, then clamped; a value is code x scale. All in f32. A group
// whose scale comes out as 0 (all zeros, or too small for f32) takes scale 1. Values are finite: the caller has looked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weighbridge::codecs {

// max|values|; `so_far` is that of earlier pieces of the group. NaN and infinity give infinity.
float largest_magnitude(std::span<const float> values, float so_far = 0) noexcept;

float q8_scale(float largest) noexcept;
float q4_scale(float largest) noexcept;

// One byte a value.
void q8_encode(std::span<const float> values, float scale, std::byte* codes) noexcept;
void q8_decode(std::span<const std::byte> codes, float scale, float* values) noexcept;
// An even number of values, one byte for two.
void q4_encode(std::span<const float> values, float scale, std::byte* codes) noexcept;
void q4_decode(std::span<const std::byte> codes, float scale, float* values) noexcept;

// How many values of a row of so many columns share a scale in q4_0: 32 where that divides it, else the largest even
// divisor below; 0 where there is none (odd columns, which q4_0 cannot hold).
std::uint32_t q4_block_for(std::uint64_t columns) noexcept;

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// q8_0 and q4_0.
#include "codecs/quantize.h"

#include <algorithm>
#include <bit>

namespace weighbridge::codecs {
namespace {

constexpr float kQ8Most = 127, kQ4Most = 7, kQ4Least = -8;
constexpr std::uint32_t kQ4PreferredBlock = 32;
constexpr std::uint32_t kMagnitude = 0x7fffffffU, kInfinity = 0x7f800000U;

// Rounds to nearest even without a call: adding 1.5 x 2^23 leaves no bits for the fraction. The bounds are integers, so
// clamping first changes nothing.
int code(float value, float scale, float least, float most) noexcept {
  constexpr float kShift = 12582912.0F;
  const float x = std::min(std::max(value / scale, least), most);
  return static_cast<int>((x + kShift) - kShift);
}

float scale_of(float largest, float most) noexcept {
  const float scale = largest / most;
  return scale > 0 ? scale : 1;
}

float nibble_value(unsigned nibble) noexcept { return static_cast<float>(static_cast<int>(nibble ^ 8U) - 8); }

}  // namespace

float largest_magnitude(std::span<const float> values, float so_far) noexcept {
  // Magnitudes sort the same as integers and as floats, with infinity and NaN on top.
  std::uint32_t largest = std::bit_cast<std::uint32_t>(so_far);
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & kMagnitude);
  return std::bit_cast<float>(std::min(largest, kInfinity));
}

float q8_scale(float largest) noexcept { return scale_of(largest, kQ8Most); }
float q4_scale(float largest) noexcept { return scale_of(largest, kQ4Most); }

void q8_encode(std::span<const float> values, float scale, std::byte* codes) noexcept {
  for (std::size_t i = 0; i < values.size(); ++i)
    codes[i] = static_cast<std::byte>(code(values[i], scale, -kQ8Most, kQ8Most));
}

void q8_decode(std::span<const std::byte> codes, float scale, float* values) noexcept {
  for (std::size_t i = 0; i < codes.size(); ++i)
    values[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * scale;
}

void q4_encode(std::span<const float> values, float scale, std::byte* codes) noexcept {
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    const int low = code(values[i], scale, kQ4Least, kQ4Most), high = code(values[i + 1], scale, kQ4Least, kQ4Most);
    codes[i / 2] = static_cast<std::byte>((low & 15) | (high & 15) << 4);
  }
}

void q4_decode(std::span<const std::byte> codes, float scale, float* values) noexcept {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(codes[i]);
    values[2 * i] = nibble_value(byte & 15U) * scale;
    values[2 * i + 1] = nibble_value(byte >> 4) * scale;
  }
}

std::uint32_t q4_block_for(std::uint64_t columns) noexcept {
  for (std::uint32_t block = kQ4PreferredBlock; block > 0; block -= 2)
    if (columns % block == 0) return block;
  return 0;
}

}  // namespace weighbridge::codecs

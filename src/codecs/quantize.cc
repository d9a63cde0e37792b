// SPDX-License-Identifier: Apache-2.0
// q8_0 and q4_0: the scales; the loops are in kernels.inc.
#include "codecs/quantize.h"

#include <algorithm>
#include <bit>

#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

constexpr float kMaxQ8 = 127, kMaxQ4 = 7;
constexpr std::uint32_t kQ4PreferredBlock = 32;
constexpr std::uint32_t kInfinity = 0x7f800000U;

float scale_of(float largest, float maximum) noexcept {
  const float scale = largest / maximum;
  return scale > 0 ? scale : 1;
}

}  // namespace

float largest_magnitude(std::span<const float> values, float so_far) noexcept {
  const std::uint32_t largest = kernels().largest_bits(values.data(), values.size());
  return std::bit_cast<float>(std::min(std::max(largest, std::bit_cast<std::uint32_t>(so_far)), kInfinity));
}

float q8_scale(float largest) noexcept { return scale_of(largest, kMaxQ8); }
float q4_scale(float largest) noexcept { return scale_of(largest, kMaxQ4); }

void q8_encode(std::span<const float> values, float scale, std::byte* codes) noexcept {
  kernels().q8_encode(values.data(), scale, codes, values.size());
}
void q8_decode(std::span<const std::byte> codes, float scale, float* values) noexcept {
  kernels().q8_decode(codes.data(), scale, values, codes.size());
}
void q4_encode(std::span<const float> values, float scale, std::byte* codes) noexcept {
  kernels().q4_encode(values.data(), scale, codes, values.size() / 2);
}
void q4_decode(std::span<const std::byte> codes, float scale, float* values) noexcept {
  kernels().q4_decode(codes.data(), scale, values, codes.size());
}

std::uint32_t q4_block_for(std::uint64_t columns) noexcept {
  for (std::uint32_t block = kQ4PreferredBlock; block > 0; block -= 2)
    if (columns % block == 0) return block;
  return 0;
}

}  // namespace weighbridge::codecs

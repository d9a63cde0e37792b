// SPDX-License-Identifier: Apache-2.0
// Each operation is in f32 and rounded by itself, in the order of the package.
#include "codecs/ggml.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/endian.h"
#include "codecs/ggml_tables.h"
#include "codecs/small_float.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kSmall = 32, kLarge = 256;  // elements per block

template <std::size_t kElements> using Codes = std::array<std::uint8_t, kElements>;

std::byte byte(unsigned value) noexcept { return static_cast<std::byte>(value & 0xFF); }

void store_f16(std::byte* to, float value) noexcept {
  base::store_le(to, static_cast<std::uint16_t>(encode_float<kF16>(std::bit_cast<std::uint32_t>(value))));
}

float magnitude(float value) noexcept {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
}
float largest(const float* values, std::size_t n) noexcept {
  float out = 0;
  for (std::size_t i = 0; i < n; ++i) out = std::max(out, magnitude(values[i]));
  return out;
}
// The first value of the largest magnitude, with its sign.
float furthest(const float* values) noexcept {
  float out = values[0];
  for (std::size_t i = 1; i < kSmall; ++i)
    if (magnitude(values[i]) > magnitude(out)) out = values[i];
  return out;
}

float reciprocal(float value) noexcept { return value == 0 ? 0 : 1 / value; }

// What 32 bits cannot hold, NaN included, becomes 0, as x86 converts it to a byte. Without branches, like all below, so
// that loops become vectors.
float bounded(float value) noexcept { return magnitude(value) < 0x1p31F ? value : 0; }
// The low byte of a number cut to an integer.
std::uint8_t cut(float value) noexcept {
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(bounded(value)) & 0xFF);
}
// The low byte of the nearest integer; halves go away from zero.
std::uint8_t rounded(float value) noexcept {
  const float within = bounded(value);
  const auto whole = static_cast<std::int32_t>(within);
  const float rest = within - static_cast<float>(whole);
  return static_cast<std::uint8_t>((whole + (rest >= 0.5F ? 1 : 0) - (rest <= -0.5F ? 1 : 0)) & 0xFF);
}

// The nibbles of 32 codes: element j in the low half of byte j, element j + 16 in the high half.
void store_nibbles(const Codes<kSmall>& codes, std::byte* to) noexcept {
  for (std::size_t j = 0; j < 16; ++j) to[j] = byte((codes[j] & 15U) | (codes[j + 16] & 15U) << 4);
}
void store_fifth_bits(const Codes<kSmall>& codes, std::byte* to) noexcept {
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < kSmall; ++j) bits |= (codes[j] >> 4 & 1U) << j;
  base::store_le(to, bits);
}

// Codes around kZero, the value of the largest magnitude at 0; returns the scale.
template <int kZero> float codes_of(const float* values, Codes<kSmall>& codes) noexcept {
  const float scale = furthest(values) / -static_cast<float>(kZero), inverse = reciprocal(scale);
  constexpr float kHalf = static_cast<float>(kZero) + 0.5F;
  for (std::size_t j = 0; j < kSmall; ++j) {
    const float product = values[j] * inverse;
    codes[j] = std::min(cut(product + kHalf), std::uint8_t{2 * kZero - 1});
  }
  return scale;
}

// Codes from the least value up to kMost; returns the scale.
template <int kMost> float codes_above(const float* values, float& least, Codes<kSmall>& codes) noexcept {
  least = values[0];
  float most = values[0];
  for (std::size_t j = 1; j < kSmall; ++j) {
    least = std::min(least, values[j]);
    most = std::max(most, values[j]);
  }
  const float scale = (most - least) / static_cast<float>(kMost), inverse = reciprocal(scale);
  for (std::size_t j = 0; j < kSmall; ++j) {
    const float product = (values[j] - least) * inverse;
    codes[j] = std::min(cut(product + 0.5F), std::uint8_t{kMost});
  }
  return scale;
}

// -1, 0 and 1 as 0, 1 and 2; returns the scale.
float ternary(const float* values, Codes<kLarge>& codes) noexcept {
  const float scale = largest(values, kLarge), inverse = reciprocal(scale);
  for (std::size_t j = 0; j < kLarge; ++j) codes[j] = static_cast<std::uint8_t>(rounded(values[j] * inverse) + 1);
  return scale;
}

// floor(log2(value)) with the logarithm rounded to f32: just below a power of two, it is the exponent of that power.
int floor_of_log2(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool subnormal = bits < 0x00800000U;
  const int width = static_cast<int>(std::bit_width(bits));
  const std::uint32_t significand = subnormal ? bits << (24 - width) : (bits & 0x007FFFFFU) | 0x00800000U;
  const int above = subnormal ? width - 149 : static_cast<int>(bits >> 23) - 126;  // of the next power of two
  // Its logarithm is `above` less m / ln(2) / 2^24, for a value that is m / 2^24 of it below. That is rounded to
  // `above` if m is at most ln(2) times half the step of f32 there; the table has an entry for each size of steps.
  constexpr std::uint32_t kMost[] = {0, 0, 1, 2, 5, 11, 22, 44, 88};
  const std::uint32_t steps = 0x01000000U - significand;
  const auto place = static_cast<std::uint32_t>(above > 0 ? above - 1 : -above);
  return steps <= kMost[std::bit_width(place)] ? above : above - 1;
}

template <std::size_t kElements, std::size_t kBytes, void (*kBlock)(const float*, std::byte*) noexcept>
void all_blocks(std::span<const float> values, std::byte* blocks) noexcept {
  for (std::size_t i = 0; i + kElements <= values.size(); i += kElements, blocks += kBytes)
    kBlock(values.data() + i, blocks);
}

void q8_0(const float* values, std::byte* to) noexcept {
  const float scale = largest(values, kSmall) / 127, inverse = reciprocal(scale);
  store_f16(to, scale);
  for (std::size_t j = 0; j < kSmall; ++j) to[2 + j] = byte(rounded(values[j] * inverse));
}

void q4_0(const float* values, std::byte* to) noexcept {
  Codes<kSmall> codes;
  store_f16(to, codes_of<8>(values, codes));
  store_nibbles(codes, to + 2);
}

void q4_1(const float* values, std::byte* to) noexcept {
  Codes<kSmall> codes;
  float least;
  store_f16(to, codes_above<15>(values, least, codes));
  store_f16(to + 2, least);
  store_nibbles(codes, to + 4);
}

void q5_0(const float* values, std::byte* to) noexcept {
  Codes<kSmall> codes;
  store_f16(to, codes_of<16>(values, codes));
  store_fifth_bits(codes, to + 2);
  store_nibbles(codes, to + 6);
}

void q5_1(const float* values, std::byte* to) noexcept {
  Codes<kSmall> codes;
  float least;
  store_f16(to, codes_above<31>(values, least, codes));
  store_f16(to + 2, least);
  store_fifth_bits(codes, to + 4);
  store_nibbles(codes, to + 8);
}

// Each code is the first of those with the least error.
void mxfp4(const float* values, std::byte* to) noexcept {
  const float most = largest(values, kSmall);
  // Below 2^-125 the code wraps around: a huge scale, for codes that are all 0.
  const auto exponent = static_cast<std::uint8_t>(most > 0 ? floor_of_log2(most) - 2 + 127 : 0);
  const float scale = std::bit_cast<float>(ggml_half_e8m0(exponent));
  // Errors as the bits of their magnitudes, which have the same order, and codes as wide as these: the loop becomes
  // vectors.
  std::int32_t least[kSmall], best[kSmall] = {};
  for (std::size_t j = 0; j < kSmall; ++j) least[j] = std::bit_cast<std::int32_t>(magnitude(0 * scale - values[j]));
  for (std::int32_t code = 1; code < 16; ++code) {
    const float value = static_cast<float>(kGgmlFp4[code]) * scale;
    for (std::size_t j = 0; j < kSmall; ++j) {
      const auto error = std::bit_cast<std::int32_t>(magnitude(value - values[j]));
      const std::int32_t nearer = -static_cast<std::int32_t>(error < least[j]);
      best[j] = (best[j] & ~nearer) | (code & nearer);
      least[j] = (least[j] & ~nearer) | (error & nearer);
    }
  }
  Codes<kSmall> codes;
  for (std::size_t j = 0; j < kSmall; ++j) codes[j] = static_cast<std::uint8_t>(best[j]);
  to[0] = byte(exponent);
  store_nibbles(codes, to + 1);
}

// Base-3 digits as a fraction of 243, rounded up to one of 256.
std::byte digits(const std::uint8_t* codes, std::size_t step, std::size_t count) noexcept {
  unsigned number = 0;
  for (std::size_t n = 0; n < 5; ++n) number = 3 * number + (n < count ? codes[n * step] : 0U);
  return byte((number * 256 + 242) / 243);
}

void tq1_0(const float* values, std::byte* to) noexcept {
  Codes<kLarge> codes;
  store_f16(to + 52, ternary(values, codes));
  for (std::size_t j = 0; j < 32; ++j) to[j] = digits(codes.data() + j, 32, 5);
  for (std::size_t j = 0; j < 16; ++j) to[32 + j] = digits(codes.data() + 160 + j, 16, 5);
  for (std::size_t j = 0; j < 4; ++j) to[48 + j] = digits(codes.data() + 240 + j, 4, 4);
}

void tq2_0(const float* values, std::byte* to) noexcept {
  Codes<kLarge> codes;
  store_f16(to + 64, ternary(values, codes));
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t j = 0; j < 32; ++j) {
      const std::uint8_t* const from = codes.data() + 128 * half + j;
      to[32 * half + j] = byte(from[0] | unsigned{from[32]} << 2 | unsigned{from[64]} << 4 | unsigned{from[96]} << 6);
    }
}

}  // namespace

void ggml_encode_q8_0(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kSmall, 34, q8_0>(values, blocks);
}
void ggml_encode_q4_0(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kSmall, 18, q4_0>(values, blocks);
}
void ggml_encode_q4_1(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kSmall, 20, q4_1>(values, blocks);
}
void ggml_encode_q5_0(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kSmall, 22, q5_0>(values, blocks);
}
void ggml_encode_q5_1(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kSmall, 24, q5_1>(values, blocks);
}
void ggml_encode_mxfp4(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kSmall, 17, mxfp4>(values, blocks);
}
void ggml_encode_tq1_0(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kLarge, 54, tq1_0>(values, blocks);
}
void ggml_encode_tq2_0(std::span<const float> values, std::byte* blocks) noexcept {
  all_blocks<kLarge, 66, tq2_0>(values, blocks);
}

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of every code, ties, extreme scales, and the block size for every width.
#include "codecs/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

std::vector<int> q8_codes(const std::vector<float>& values, float scale) {
  std::vector<std::byte> codes(values.size());
  q8_encode(values, scale, codes.data());
  std::vector<int> out;
  for (const std::byte c : codes) out.push_back(static_cast<std::int8_t>(c));
  return out;
}

TEST(Quantize, EveryQ8CodeComesBack) {
  for (int c = -128; c <= 127; ++c) {
    const std::byte byte = static_cast<std::byte>(c);
    float value = 0;
    q8_decode({&byte, 1}, 0.5F, &value);
    EXPECT_EQ(value, 0.5F * static_cast<float>(c));
    EXPECT_EQ(q8_codes({value}, 0.5F)[0], std::max(c, -127));
  }
}

TEST(Quantize, EveryQ4ByteComesBack) {
  for (unsigned b = 0; b < 256; ++b) {
    const std::byte byte{static_cast<unsigned char>(b)};
    float values[2];
    q4_decode({&byte, 1}, 2.0F, values);
    const auto signed_of = [](unsigned n) { return n < 8 ? static_cast<int>(n) : static_cast<int>(n) - 16; };
    EXPECT_EQ(values[0], 2.0F * static_cast<float>(signed_of(b & 15)));
    EXPECT_EQ(values[1], 2.0F * static_cast<float>(signed_of(b >> 4)));
    std::byte again{};
    q4_encode(values, 2.0F, &again);
    EXPECT_EQ(again, byte);
  }
}

TEST(Quantize, RoundsToEvenThenClamps) {
  EXPECT_EQ(q8_codes({0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 126.5F, 127.4F, 300, -300, 0.49999997F}, 1),
            (std::vector<int>{0, 2, 2, 0, -2, -2, 126, 127, 127, -127, 0}));
  const float values[] = {7.5F, -8.5F, 3.5F, -20};
  std::byte codes[2];
  q4_encode(values, 1, codes);
  EXPECT_EQ(codes[0], std::byte{0x87});  // 7, -8
  EXPECT_EQ(codes[1], std::byte{0x84});  // 4, -8
}

TEST(Quantize, ScalesComeFromTheLargestMagnitude) {
  const std::vector<float> values = {1, -6.35F, 2};
  EXPECT_EQ(largest_magnitude(values), 6.35F);
  EXPECT_EQ(largest_magnitude(values, 9), 9);
  EXPECT_EQ(largest_magnitude({}), 0);
  EXPECT_EQ(q8_scale(6.35F), 6.35F / 127);
  EXPECT_EQ(q4_scale(6.35F), 6.35F / 7);
  EXPECT_EQ(q8_scale(0), 1);
  EXPECT_EQ(q4_scale(0), 1);
  // Too small for a nonzero scale.
  EXPECT_EQ(q8_scale(std::numeric_limits<float>::denorm_min()), 1);
  EXPECT_GT(q8_scale(std::numeric_limits<float>::max()), 0);
  const float odd[] = {1, std::numeric_limits<float>::quiet_NaN()}, infinite[] = {-INFINITY, 1};
  EXPECT_EQ(largest_magnitude(odd), INFINITY);
  EXPECT_EQ(largest_magnitude(infinite), INFINITY);
}

TEST(Quantize, ErrorIsHalfAStepAtMost) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 0.7F) * 3;
  const float largest = largest_magnitude(values);
  std::vector<std::byte> codes(values.size());
  std::vector<float> back(values.size());
  q8_encode(values, q8_scale(largest), codes.data());
  q8_decode(codes, q8_scale(largest), back.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_LE(std::fabs(values[i] - back[i]), q8_scale(largest) * 0.50001F) << i;
  q4_encode(values, q4_scale(largest), codes.data());
  q4_decode(std::span(codes).first(values.size() / 2), q4_scale(largest), back.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_LE(std::fabs(values[i] - back[i]), q4_scale(largest) * 0.50001F) << i;
}

TEST(Quantize, Q4BlocksAreTheLargestEvenDivisorUpTo32) {
  EXPECT_EQ(q4_block_for(512), 32U);
  EXPECT_EQ(q4_block_for(172), 4U);  // reading M7's example
  EXPECT_EQ(q4_block_for(260), 26U);
  EXPECT_EQ(q4_block_for(2), 2U);
  EXPECT_EQ(q4_block_for(7), 0U);
  for (std::uint64_t columns = 1; columns < 500; ++columns) {
    std::uint32_t expected = 0;
    for (std::uint32_t block = 2; block <= 32; block += 2)
      if (columns % block == 0) expected = block;
    EXPECT_EQ(q4_block_for(columns), expected) << columns;
  }
}

TEST(Quantize, EveryInstructionSetGivesTheSameCodes) {
  std::vector<float> values;
  for (int i = 0; i < 515; ++i) values.push_back(static_cast<float>(i % 2 == 0 ? i : -i) * 0.25F);
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{257}}) {
    const Kernels& plain = *all_kernels()[0];
    for (const Kernels* const set : all_kernels()) {
      for (const float scale : {0.25F, 1.0F, 0.7F}) {
        std::vector<std::byte> expected(n), codes(n);
        std::vector<float> wide(2 * n), decoded(2 * n);
        const auto compare = [&](auto encode, auto decode) {
          (plain.*encode)(values.data(), scale, expected.data(), n);
          (set->*encode)(values.data(), scale, codes.data(), n);
          EXPECT_EQ(codes, expected) << set->name;
          (plain.*decode)(expected.data(), scale, wide.data(), n);
          (set->*decode)(expected.data(), scale, decoded.data(), n);
          EXPECT_EQ(decoded, wide) << set->name;
        };
        compare(&Kernels::q8_encode, &Kernels::q8_decode);
        compare(&Kernels::q4_encode, &Kernels::q4_decode);
      }
      EXPECT_EQ(set->largest_bits(values.data(), n), plain.largest_bits(values.data(), n)) << set->name;
    }
  }
}

}  // namespace
}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// quantized_group against the formula, element by element.
#include "codecs/dequant.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/endian.h"
#include "codecs/cast.h"

namespace weighbridge::codecs {
namespace {

struct Case {
  QuantizedGroup tensor;
  std::vector<std::byte> words, scales, zeros;
  std::vector<float> expected;
};

Case make(std::uint64_t rows, std::uint64_t cols, std::uint32_t bits, std::uint64_t group, DType word, DType scale,
          DType zero) {
  Case c;
  const std::uint32_t word_bits = info(word).bits, n = word_bits / bits;
  c.tensor = {rows, cols, bits, group, {n, word}, scale, zero};
  std::mt19937 random(23);
  const std::uint64_t word_rows = (rows + n - 1) / n;
  c.words.resize(static_cast<std::size_t>(word_rows * cols * word_bits / 8));
  for (std::byte& b : c.words) b = static_cast<std::byte>(random());
  const std::size_t groups = static_cast<std::size_t>(rows / group * cols);
  std::vector<std::int64_t> raw_zeros(groups);
  std::vector<double> raw_scales(groups);
  for (std::size_t i = 0; i < groups; ++i) {
    raw_zeros[i] = static_cast<std::int64_t>(random() % 16);
    raw_scales[i] = static_cast<double>(random() % 512) / 1024 + 0.25;  // exact in bf16 or rounded below
  }
  c.scales.resize(groups * info(scale).bits / 8);
  c.zeros.resize(groups * info(zero).bits / 8);
  EXPECT_TRUE(cast(DType::f64, std::as_bytes(std::span(raw_scales)), scale, c.scales, groups).ok() ||
              scale == DType::f64);
  EXPECT_TRUE(cast(DType::i64, std::as_bytes(std::span(raw_zeros)), zero, c.zeros, groups).ok());
  EXPECT_TRUE(cast(scale, c.scales, DType::f64, std::as_writable_bytes(std::span(raw_scales)), groups).ok());
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t col = 0; col < cols; ++col) {
      std::uint64_t value = 0;  // the word, byte by byte
      for (std::uint32_t b = word_bits / 8; b-- > 0;)
        value = value << 8 | std::to_integer<std::uint64_t>(
                                 c.words[static_cast<std::size_t>((r / n * cols + col) * (word_bits / 8) + b)]);
      const auto code = static_cast<double>(value >> (r % n * bits) & ((1u << bits) - 1));
      const auto g = static_cast<std::size_t>(r / group * cols + col);
      c.expected.push_back(static_cast<float>((code - static_cast<double>(raw_zeros[g])) * raw_scales[g]));
    }
  return c;
}

TEST(Dequantize, FollowsTheFormulaForEveryPackingAndDtype) {
  for (const DType word :
       {DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::i32, DType::u64, DType::i64})
    for (const std::uint32_t bits : {2u, 4u, 8u})
      for (const auto& [scale, zero] : {std::pair{DType::f16, DType::f16},
                                        {DType::bf16, DType::u8},
                                        {DType::f32, DType::i32},
                                        {DType::f64, DType::i64}}) {
        const Case c = make(12, 1030, bits, 6, word, scale,
                            zero);  // wider than a tile; u64 words have room for more rows than there are
        ASSERT_EQ(c.tensor.problem(), "");
        std::vector<float> out(c.expected.size());
        ASSERT_TRUE(dequantize_rows(c.tensor, 0, 12, c.words, c.scales, c.zeros, out));
        EXPECT_EQ(out, c.expected) << name(word) << ' ' << bits << ' ' << name(scale);
      }
}

TEST(Dequantize, AnyRangeOfRowsGivesItsPartOfTheWhole) {
  const Case c = make(24, 5, 4, 6, DType::u16, DType::f32, DType::u8);
  const std::uint64_t n = c.tensor.packing.codes_per_word;
  for (std::uint64_t first = 0; first < 24; ++first)
    for (std::uint64_t count = 0; first + count <= 24; ++count) {
      std::vector<float> out(count * 5);
      const auto words = std::span(c.words).subspan(first / n * 5 * 2);
      const auto scales = std::span(c.scales).subspan(first / 6 * 5 * 4),
                 zeros = std::span(c.zeros).subspan(first / 6 * 5);
      ASSERT_TRUE(dequantize_rows(c.tensor, first, count, words, scales, zeros, out));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), c.expected.begin() + static_cast<std::ptrdiff_t>(first * 5)))
          << first << '+' << count;
    }
}

TEST(Dequantize, RefusesSpansThatAreTooShortAndRowsOutside) {
  const Case c = make(8, 3, 4, 4, DType::u8, DType::f16, DType::f16);
  std::vector<float> out(24, -1);
  const std::span words(c.words), scales(c.scales), zeros(c.zeros);
  EXPECT_FALSE(dequantize_rows(c.tensor, 0, 8, words.first(words.size() - 1), scales, zeros, out));
  EXPECT_FALSE(dequantize_rows(c.tensor, 0, 8, words, scales.first(scales.size() - 1), zeros, out));
  EXPECT_FALSE(dequantize_rows(c.tensor, 0, 8, words, scales, zeros.first(zeros.size() - 1), out));
  EXPECT_FALSE(dequantize_rows(c.tensor, 0, 8, words, scales, zeros, std::span(out).first(23)));
  EXPECT_FALSE(dequantize_rows(c.tensor, 1, 8, words, scales, zeros, out));
  EXPECT_FALSE(dequantize_rows(c.tensor, ~std::uint64_t{0}, 2, words, scales, zeros, out));
  QuantizedGroup huge = c.tensor;
  huge.cols = ~std::uint64_t{0} / 2;
  EXPECT_FALSE(dequantize_rows(huge, 0, 8, words, scales, zeros, out));
  EXPECT_EQ(out, std::vector<float>(24, -1));
}

TEST(Dequantize, SaysWhatKeepsATensorFromIt) {
  const QuantizedGroup good{8, 3, 4, 4, {8, DType::i32}, DType::f16, DType::u8};
  EXPECT_EQ(good.problem(), "");
  const auto with = [&](auto change) {
    QuantizedGroup t = good;
    change(t);
    EXPECT_EQ(t.usable(), t.problem().empty());
    return t.problem();
  };
  EXPECT_EQ(with([](QuantizedGroup& t) { t.bits = 3; }),
            "codes of 3 bits cannot be dequantized, only those of 2, 4 and 8");
  EXPECT_EQ(with([](QuantizedGroup& t) { t.group_size = 3; }), "the group size 3 does not divide the 8 rows");
  EXPECT_NE(with([](QuantizedGroup& t) { t.group_size = 0; }), "");
  EXPECT_EQ(with([](QuantizedGroup& t) { t.packing.codes_per_word = 4; }),
            "4 codes of 4 bits do not fill a word of 32 bits");
  EXPECT_NE(with([](QuantizedGroup& t) { t.packing.word = DType::f32; }), "");
  EXPECT_NE(with([](QuantizedGroup& t) { t.scales = DType::u8; }), "");
  EXPECT_NE(with([](QuantizedGroup& t) { t.zeros = DType::complex64; }), "");
}

TEST(Dequantize, WordsAndZerosOfFourBitsHaveNoBytesToReadAt) {
  EXPECT_EQ(parse_packing("1_per_i4"), std::nullopt);
  QuantizedGroup t{8, 3, 4, 4, {1, DType::i4}, DType::f16, DType::u8};
  EXPECT_EQ(t.problem(), "the packing names no integer word");
  EXPECT_FALSE(t.usable());
  t = {8, 3, 4, 4, {8, DType::i32}, DType::f16, DType::i4};
  EXPECT_EQ(t.problem(), "zeros of dtype i4 are neither integers nor real numbers");
  EXPECT_FALSE(t.usable());
}

TEST(Dequantize, ReadsPackingNames) {
  EXPECT_EQ(parse_packing("8_per_i32"), (Packing{8, DType::i32}));
  EXPECT_EQ(parse_packing("32_per_u64"), (Packing{32, DType::u64}));
  for (const std::string_view wrong : {"", "8", "_per_i32", "8_per_", "08_per_i32", "0_per_i32", "8_per_f32",
                                       "8_per_i32 ", "-8_per_i32", "8per_i32", "4294967304_per_i32"})
    EXPECT_EQ(parse_packing(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace weighbridge::codecs

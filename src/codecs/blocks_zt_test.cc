// SPDX-License-Identifier: Apache-2.0
// The values of zTensor 2's quantized profiles, computed from their text by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "codecs/blocks.h"

namespace weighbridge::codecs {
namespace {

template <class T> std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<float> decoded(const BlockForm& form, const std::vector<std::vector<std::byte>>& parts) {
  EXPECT_EQ(block_problem(form), "");
  std::vector<std::span<const std::byte>> spans(parts.begin(), parts.end());
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(block_part_size(form, i), parts[i].size());
  std::vector<float> out(form.elements());
  form.type->codec->decode(form, 0, form.elements(), spans, out.data());
  return out;
}

TEST(ZtQuant, OrdersOfCodesAndImpliedZeros) {
  BlockForm form{find_block_type("zt.quant"), 1, 1, 8, 4, 4, {8, DType::u32}, {DType::u32, DType::f32}, 8};
  form.zero = 8;
  const auto words = bytes_of<std::uint32_t>({0x76543210}), scales = bytes_of<float>({0.5F, 2.0F});
  EXPECT_EQ(decoded(form, {words, scales}), (std::vector<float>{-4, -3.5, -3, -2.5, -8, -6, -4, -2}));
  form.msb_first = true;
  EXPECT_EQ(decoded(form, {words, scales}), (std::vector<float>{-0.5, -1, -1.5, -2, -10, -12, -14, -16}));
}

TEST(ZtQuant, SignedCodesAreThoseOfSignedWords) {
  BlockForm form{find_block_type("zt.quant"), 1, 1, 4, 2, 8, {1, DType::u8}, {DType::i8, DType::f8_e8m0}, 4};
  const auto codes = bytes_of<std::uint8_t>({0xFF, 0x80, 0x7F, 1}), scales = bytes_of<std::uint8_t>({126, 0xFF});
  std::vector<float> values = decoded(form, {codes, scales});
  EXPECT_EQ(values[0], -0.5F);
  EXPECT_EQ(values[1], -64);
  EXPECT_TRUE(std::isnan(values[2]) && std::isnan(values[3]));
  form.dtypes[0] = DType::u8;
  values = decoded(form, {codes, scales});
  EXPECT_EQ(values[0], 127.5F);
  EXPECT_EQ(values[1], 64);
}

TEST(ZtQuant, AZeroForEachGroup) {
  const BlockForm form{find_block_type("zt.quant_zeros"),  1, 1, 4, 2, 2, {4, DType::u8},
                       {DType::u8, DType::f32, DType::u8}, 4};
  EXPECT_EQ(
      decoded(form, {bytes_of<std::uint8_t>({0b11100100}), bytes_of<float>({1, 10}), bytes_of<std::uint8_t>({1, 2})}),
      (std::vector<float>{-1, 0, 0, 10}));
}

TEST(ZtQuant, WordsAndZerosOfFourBitsHaveNoBytesToReadAt) {
  BlockForm form{find_block_type("zt.quant_zeros"),  1, 1, 4, 2, 4, {1, DType::i4},
                 {DType::i4, DType::f32, DType::u8}, 4};
  EXPECT_EQ(block_problem(form), "the packing names no integer word");
  form.packing = {2, DType::u8};
  form.dtypes = {DType::u8, DType::f32, DType::i4};
  EXPECT_EQ(block_problem(form), "zeros of dtype i4 are neither integers nor real numbers");
}

TEST(ZtMx, EveryElementType) {
  const auto form = [](DType element, std::uint64_t columns) {
    return BlockForm{find_block_type("zt.mx"), 1, 1, columns, 2, 0, {}, {element, DType::f8_e8m0}, columns};
  };
  const auto scales = bytes_of<std::uint8_t>({128, 126});  // 2, 1/2
  EXPECT_EQ(decoded(form(DType::f4, 4), {bytes_of<std::uint8_t>({0xF1, 0x27}), scales}),
            (std::vector<float>{1, -12, 3, 0.5}));
  EXPECT_EQ(decoded(form(DType::f8_e4m3, 4), {bytes_of<std::uint8_t>({0x38, 0xB8, 0x7E, 0x01}), scales}),
            (std::vector<float>{2, -2, 224, std::ldexp(1.0F, -10)}));
  EXPECT_EQ(decoded(form(DType::f8_e5m2, 4), {bytes_of<std::uint8_t>({0x3C, 0xFC, 0x01, 0x7B}), scales}),
            (std::vector<float>{2, -std::numeric_limits<float>::infinity(), std::ldexp(1.0F, -17), 28672}));
  EXPECT_EQ(decoded(form(DType::i8, 4), {bytes_of<std::int8_t>({64, -64, 127, -128}), scales}),
            (std::vector<float>{2, -2, 127.0F / 128, -1}));
}

}  // namespace
}  // namespace weighbridge::codecs

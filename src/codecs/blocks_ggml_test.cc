// SPDX-License-Identifier: Apache-2.0
// GGML's block types: every set of kernels against the definition of one element, over random blocks and all kinds of
// scales; the encoders. tests/interop/test_ggml_blocks.py compares both with GGML.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codecs/blocks.h"
#include "codecs/checksum.h"
#include "codecs/ggml.h"
#include "codecs/ggml_tables.h"
#include "codecs/kernels.h"
#include "codecs/small_float.h"

namespace weighbridge::codecs {
namespace {

constexpr const char* kNames[] = {
#define WB_GGML(name, elements, bytes) #name,
#include "codecs/ggml_types.def"
#undef WB_GGML
};

// A block, and what its fields hold at an offset in bytes.
struct Block {
  const std::uint8_t* at;

  unsigned byte(std::size_t i) const { return at[i]; }
  int i8(std::size_t i) const { return static_cast<std::int8_t>(at[i]); }
  unsigned u16(std::size_t i) const { return byte(i) | byte(i + 1) << 8; }
  std::uint32_t u32(std::size_t i) const { return u16(i) | u16(i + 2) << 16; }
  float f16(std::size_t i) const { return std::bit_cast<float>(decode_float<kF16>(u16(i))); }
  float f32(std::size_t i) const { return std::bit_cast<float>(u32(i)); }
  unsigned bits(std::size_t i, std::size_t shift, unsigned count) const {  // from the lowest bit of byte i up
    return byte(i + shift / 8) >> shift % 8 & ((1U << count) - 1);
  }
  // Code i of nibbles: those of `half` bytes' low nibbles, then of their high ones, then the next bytes.
  unsigned nibble(std::size_t from, std::size_t i, std::size_t half) const {
    return byte(from + i / (2 * half) * half + i % half) >> (i / half % 2 * 4) & 15;
  }
  // Code i of pairs of bits: the lowest of 32 bytes, then their second ones, and so on.
  unsigned pair(std::size_t from, std::size_t i) const {
    return byte(from + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
  }
};

float f(unsigned value) { return static_cast<float>(value); }
float f(int value) { return static_cast<float>(value); }

// The sixth part of a K type's scale (first) or minimum (second).
std::pair<unsigned, unsigned> six_bits(const Block& b, std::size_t from, std::size_t k) {
  if (k < 4) return {b.byte(from + k) & 63, b.byte(from + k + 4) & 63};
  return {(b.byte(from + k + 4) & 15) | b.byte(from + k - 4) >> 6 << 4,
          b.byte(from + k + 4) >> 4 | b.byte(from + k) >> 6 << 4};
}

int with_sign(int value, unsigned signs, std::size_t i) { return (signs >> i % 8 & 1) != 0 ? -value : value; }
unsigned even_signs(unsigned seven) { return seven | (std::popcount(seven) % 2 == 0 ? 0U : 128U); }

int digit(unsigned byte, unsigned n) {
  constexpr unsigned kPowers[] = {1, 3, 9, 27, 81};
  return static_cast<int>((byte * kPowers[n] & 255) * 3 >> 8) - 1;
}

// The definition: element i of a block, one operation after the other, each rounded to f32.
float element(Ggml type, const Block& b, std::size_t i) {
  const std::size_t g = i / 32, k = i / 16, e = i / 8;  // groups of 32, 16 and 8
  switch (type) {
    case Ggml::q4_0: return f(static_cast<int>(b.nibble(2, i, 16)) - 8) * b.f16(0);
    case Ggml::q4_1: {
      const float product = f(b.nibble(4, i, 16)) * b.f16(0);
      return product + b.f16(2);
    }
    case Ggml::q5_0: return f(static_cast<int>(b.nibble(6, i, 16) | b.bits(2, i, 1) << 4) - 16) * b.f16(0);
    case Ggml::q5_1: {
      const float product = f(b.nibble(8, i, 16) | b.bits(4, i, 1) << 4) * b.f16(0);
      return product + b.f16(2);
    }
    case Ggml::q8_0: return f(b.i8(2 + i)) * b.f16(0);
    case Ggml::q8_1: return f(b.i8(4 + i)) * b.f16(0);
    case Ggml::q2_k: {
      const float scale = b.f16(80) * f(b.byte(k) & 15), minimum = b.f16(82) * f(b.byte(k) >> 4);
      const float product = scale * f(b.pair(16, i));
      return product - minimum;
    }
    case Ggml::q3_k: {
      const unsigned low = b.byte(96 + k % 8) >> (k / 8 * 4) & 15, high = b.byte(104 + k % 4) >> (k / 4 * 2) & 3;
      const float scale = b.f16(108) * f(static_cast<int>(low | high << 4) - 32);
      const bool set = (b.byte(i % 32) >> g & 1) != 0;
      return scale * f(static_cast<int>(b.pair(32, i)) - (set ? 0 : 4));
    }
    case Ggml::q4_k: {
      const auto [s, m] = six_bits(b, 4, g);
      const float scale = b.f16(0) * f(s), minimum = b.f16(2) * f(m), product = scale * f(b.nibble(16, i, 32));
      return product - minimum;
    }
    case Ggml::q5_k: {
      const auto [s, m] = six_bits(b, 4, g);
      const unsigned code = b.nibble(48, i, 32) + ((b.byte(16 + i % 32) >> g & 1) != 0 ? 16 : 0);
      const float scale = b.f16(0) * f(s), minimum = b.f16(2) * f(m), product = scale * f(code);
      return product - minimum;
    }
    case Ggml::q6_k: {
      const float scale = b.f16(208) * f(b.i8(192 + k));
      return scale * f(static_cast<int>(b.nibble(0, i, 64) | b.pair(128, i) << 4) - 32);
    }
    case Ggml::q8_k: return b.f32(0) * f(b.i8(4 + i));
    case Ggml::iq2_xxs: {
      const std::uint32_t word = b.u32(2 + 8 * g + 4);
      const float scale = b.f16(0) * (0.5F + f(word >> 28)) * 0.25F;
      return scale *
             f(with_sign(kGgmlIq2xxs[b.byte(2 + 8 * g + e % 4)][i % 8], even_signs(word >> (7 * (e % 4)) & 127), i));
    }
    case Ggml::iq2_xs: {
      const float scale = b.f16(0) * (0.5F + f(b.bits(66, 4 * k, 4))) * 0.25F;
      const unsigned word = b.u16(2 + 2 * e);
      return scale * f(with_sign(kGgmlIq2xs[word & 511][i % 8], even_signs(word >> 9), i));
    }
    case Ggml::iq2_s: {
      const float scale = b.f16(0) * (0.5F + f(b.bits(74, 4 * k, 4))) * 0.25F;
      return scale * f(with_sign(kGgmlIq2s[b.byte(2 + e) | b.bits(66, 2 * e, 2) << 8][i % 8], b.byte(34 + e), i));
    }
    case Ggml::iq3_xxs: {
      const std::uint32_t word = b.u32(66 + 4 * g);
      const float scale = b.f16(0) * (0.5F + f(word >> 28)) * 0.5F;
      return scale * f(with_sign(kGgmlIq3xxs[b.byte(2 + i / 4)][i % 4], even_signs(word >> (7 * (e % 4)) & 127), i));
    }
    case Ggml::iq3_s: {
      const float scale = b.f16(0) * f(1 + 2 * b.bits(106, 4 * g, 4));
      return scale * f(with_sign(kGgmlIq3s[b.byte(2 + i / 4) | b.bits(66, i / 4, 1) << 8][i % 4], b.byte(74 + e), i));
    }
    case Ggml::iq1_s: {
      const unsigned word = b.u16(34 + 2 * g);
      const float scale = b.f16(0) * f(2 * (word >> 12 & 7) + 1);
      return scale * (f(kGgmlIq1[b.byte(2 + e) | (word >> (3 * (e % 4)) & 7) << 8][i % 8]) +
                      ((word & 0x8000) != 0 ? -0.125F : 0.125F));
    }
    case Ggml::iq1_m: {
      unsigned d = 0;
      for (std::size_t n = 0; n < 4; ++n) d |= b.u16(48 + 2 * n) >> 12 << (4 * n);
      const float scale =
          std::bit_cast<float>(decode_float<kF16>(d)) * f(2 * (b.u16(48 + k / 4 * 2) >> (3 * (k % 4)) & 7) + 1);
      const unsigned high = b.bits(32, 4 * e, 4);
      return scale * (f(kGgmlIq1[b.byte(e) | (high & 7) << 8][i % 8]) + ((high & 8) != 0 ? -0.125F : 0.125F));
    }
    case Ggml::iq4_nl: return f(kGgmlIq4[b.nibble(2, i, 16)]) * b.f16(0);
    case Ggml::iq4_xs: {
      const float scale = b.f16(0) * f(static_cast<int>(b.bits(4, 4 * g, 4) | b.bits(2, 2 * g, 2) << 4) - 32);
      return scale * f(kGgmlIq4[b.nibble(8, i, 16)]);
    }
    case Ggml::tq1_0: {
      if (i < 160) return f(digit(b.byte(i % 32), static_cast<unsigned>(i / 32))) * b.f16(52);
      const std::size_t rest = i - 160;
      if (i < 240) return f(digit(b.byte(32 + rest % 16), static_cast<unsigned>(rest / 16))) * b.f16(52);
      return f(digit(b.byte(48 + i % 4), static_cast<unsigned>((i - 240) / 4))) * b.f16(52);
    }
    case Ggml::tq2_0: return f(static_cast<int>(b.pair(0, i)) - 1) * b.f16(64);
    case Ggml::mxfp4: return f(kGgmlFp4[b.nibble(1, i, 16)]) * std::ldexp(1.0F, static_cast<int>(b.byte(0)) - 128);
    case Ggml::nvfp4: {
      const int exponent = static_cast<int>(b.byte(k) >> 3 & 15);
      const float mantissa = f(b.byte(k) & 7) / 8;
      const float whole = std::ldexp(exponent == 0 ? mantissa : 1 + mantissa, exponent == 0 ? -6 : exponent - 7);
      return f(kGgmlFp4[b.nibble(4, i, 8)]) * (b.byte(k) == 127 ? 0 : whole * 0.5F);
    }
    case Ggml::q1_0: return b.bits(2, i, 1) != 0 ? b.f16(0) : -b.f16(0);
    case Ggml::q2_0: return f(static_cast<int>(b.bits(2, 2 * i, 2)) - 1) * b.f16(0);
  }
  return 0;
}

// Where the f16 of a block are; q8_k has an f32, mxfp4 and nvfp4 have bytes, iq1_m has one f16 in four pieces.
std::vector<std::size_t> halves(Ggml type) {
  switch (type) {
    case Ggml::q4_1:
    case Ggml::q5_1:
    case Ggml::q8_1:
    case Ggml::q4_k:
    case Ggml::q5_k: return {0, 2};
    case Ggml::q2_k: return {80, 82};
    case Ggml::q3_k: return {108};
    case Ggml::q6_k: return {208};
    case Ggml::tq1_0: return {52};
    case Ggml::tq2_0: return {64};
    case Ggml::q8_k:
    case Ggml::iq1_m:
    case Ggml::mxfp4:
    case Ggml::nvfp4: return {};
    default: return {0};
  }
}

// Random blocks. The first kScales have f16 of every sign and exponent as their scales, so subnormals, infinities and
// NaNs.
constexpr std::size_t kScales = 2048;
std::vector<std::uint8_t> blocks_of(Ggml type, std::size_t count) {
  std::mt19937 random(7);
  const std::size_t bytes = kGgmlSizes[static_cast<std::size_t>(type)].bytes;
  std::vector<std::uint8_t> out(count * bytes);
  for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(random());
  for (std::size_t i = 0; i < std::min(count, kScales); ++i) {
    std::uint8_t* const block = out.data() + i * bytes;
    const auto put = [&](std::size_t at, std::size_t value) {
      block[at] = static_cast<std::uint8_t>(value);
      block[at + 1] = static_cast<std::uint8_t>(value >> 8);
    };
    const std::size_t scale = i * 32 + (i % 8 == 0 ? 0 : i % 31);
    const std::vector<std::size_t> at = halves(type);
    for (std::size_t n = 0; n < at.size(); ++n) put(at[n], n == 0 ? scale : scale * 40503U);
    if (type == Ggml::q8_k) put(2, scale);
    for (std::size_t n = 0; type == Ggml::iq1_m && n < 4; ++n)
      block[49 + 2 * n] = static_cast<std::uint8_t>((block[49 + 2 * n] & 15) | (scale >> (4 * n) & 15) << 4);
  }
  return out;
}

// Two NaNs are equal: their signs and payloads depend on the processor.
bool same(float got, float expected) {
  return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected) ||
         (std::isnan(got) && std::isnan(expected));
}

TEST(GgmlBlocks, EveryKernelDecodesEachElementAsDefined) {
  constexpr std::size_t kBlocks = 2'500, kRun = 100;
  for (std::size_t t = 0; t < kGgmlCount; ++t) {
    const auto type = static_cast<Ggml>(t);
    const auto [elements, bytes] = kGgmlSizes[t];
    const std::vector<std::uint8_t> blocks = blocks_of(type, kBlocks);
    std::vector<float> out(kRun * elements);
    for (std::size_t first = 0; first < kBlocks; first += kRun) {
      std::vector<float> expected(kRun * elements);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = element(type, {blocks.data() + (first + i / elements) * bytes}, i % elements);
      for (const Kernels* const set : all_kernels()) {
        set->ggml[t](blocks.data() + first * bytes, out.data(), kRun);
        for (std::size_t i = 0; i < out.size(); ++i)
          if (!same(out[i], expected[i]))
            FAIL() << kNames[t] << ", " << set->name << ", block " << first + i / elements << ", element "
                   << i % elements << ": " << out[i] << " is not " << expected[i];
      }
    }
  }
}

TEST(GgmlBlocks, AnyNumberOfBlocksIsDecodedAndNoMore) {
  for (std::size_t t = 0; t < kGgmlCount; ++t) {
    const auto [elements, bytes] = kGgmlSizes[t];
    const std::vector<std::uint8_t> blocks = blocks_of(static_cast<Ggml>(t), 5);
    std::vector<float> whole(5 * elements);
    kernels().ggml[t](blocks.data(), whole.data(), 5);
    for (const Kernels* const set : all_kernels())
      for (std::size_t count = 0; count <= 4; ++count) {
        // No room beyond the blocks, so that the address sanitizer sees a read or a write past them.
        const std::vector<std::uint8_t> some(blocks.begin(),
                                             blocks.begin() + static_cast<std::ptrdiff_t>(count * bytes));
        std::vector<float> out(count * elements);
        set->ggml[t](some.data(), out.data(), count);
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_TRUE(same(out[i], whole[i])) << kNames[t];
      }
  }
}

std::vector<std::byte> encoded(const char* id, const std::vector<float>& values) {
  const BlockTypeInfo& type = *find_block_type(id);
  std::vector<std::byte> out(values.size() / type.block_elements * type.block_bytes);
  type.codec->encode(values, {}, out.data());
  return out;
}

// Values that a block can hold come back, whatever their scale.
TEST(GgmlBlocks, EncodersKeepWhatTheirTypesCanHold) {
  const auto integers = [](int from, int to, float scale) {
    std::vector<float> out(512);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = scale * static_cast<float>(from + static_cast<int>(i * 7 % static_cast<std::size_t>(to - from + 1)));
    return out;
  };
  std::vector<float> fp4(512), q8 = integers(-127, 127, 0.5F);
  for (std::size_t i = 0; i < fp4.size(); ++i) fp4[i] = 16 * static_cast<float>(kGgmlFp4[i % 16]);
  for (std::size_t i = 0; i < q8.size(); i += 32) q8[i] = 63.5F;  // the largest, in every block
  std::vector<float> fives = integers(-16, 15, 8), upper_fives = integers(0, 31, 2);
  const std::pair<const char*, std::vector<float>> cases[] = {{"ggml.q8_0", q8},
                                                              {"ggml.q4_0", integers(-8, 7, 0.25F)},
                                                              {"ggml.q4_1", integers(0, 15, 4)},
                                                              {"ggml.q5_0", fives},
                                                              {"ggml.q5_1", upper_fives},
                                                              {"ggml.mxfp4", fp4},
                                                              {"ggml.tq1_0", integers(-1, 1, 3)},
                                                              {"ggml.tq2_0", integers(-1, 1, 3)},
                                                              {"ggml.q8_0", std::vector<float>(512)},
                                                              {"ggml.mxfp4", std::vector<float>(512)}};
  for (const auto& [id, values] : cases) {
    SCOPED_TRACE(id);
    const std::vector<std::byte> blocks = encoded(id, values);
    BlockForm form;
    form.type = find_block_type(id);
    form.rank = 1;
    form.rows = 1;
    form.columns = form.row = values.size();
    const std::array<std::span<const std::byte>, 1> parts{blocks};
    std::vector<float> back(values.size());
    form.type->codec->decode(form, 0, values.size(), parts, back.data());
    EXPECT_EQ(back, values);
  }
}

// The package takes the logarithm in f32, which rounds up to 10 for the five values next to 2^10.
TEST(GgmlBlocks, Mxfp4RoundsTheLogarithmOfItsScale) {
  const auto scale_of = [](std::uint32_t steps) {
    std::vector<float> values(32);
    values[5] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(1024.0F) - steps);
    return std::to_integer<int>(encoded("ggml.mxfp4", values)[0]);
  };
  EXPECT_EQ(scale_of(0), 10 - 2 + 127);
  EXPECT_EQ(scale_of(1), 10 - 2 + 127);
  EXPECT_EQ(scale_of(5), 10 - 2 + 127);
  EXPECT_EQ(scale_of(6), 9 - 2 + 127);
}

// Values of every size: ties, subnormals, zeros of both signs, blocks without a scale and with the largest one.
std::vector<float> values_to_encode(std::size_t blocks, std::size_t elements) {
  std::mt19937 random(11);
  std::vector<float> out(blocks * elements);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t block = i / elements;
    const float value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.5F;
    out[i] = block % 7 == 0   ? std::ldexp(value, static_cast<int>(block % 250) - 140)
             : block % 7 == 1 ? 0.0F * value
             : block % 7 == 2 ? std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0xBFFFFFFFU)
                              : value;
    if (!std::isfinite(out[i])) out[i] = std::numeric_limits<float>::max();
  }
  return out;
}

TEST(GgmlBlocks, EncodersGiveTheSameBytesWithEveryInstructionSet) {
  std::size_t encoders = 0;
  for (std::size_t t = 0; t < kGgmlCount; ++t) {
    const auto [elements, bytes] = kGgmlSizes[t];
    EXPECT_EQ(kernels().ggml_encode[t] != nullptr, ggml_encodes(static_cast<Ggml>(t))) << kNames[t];
    if (kernels().ggml_encode[t] == nullptr) continue;
    ++encoders;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{700}}) {
      const std::vector<float> values = values_to_encode(count, elements);
      std::vector<std::byte> expected(count * bytes);
      all_kernels()[0]->ggml_encode[t](values.data(), {}, expected.data(), count);
      for (const Kernels* const set : all_kernels()) {
        std::vector<std::byte> out(count * bytes);
        set->ggml_encode[t](values.data(), {}, out.data(), count);
        EXPECT_TRUE(out == expected) << kNames[t] << ", " << set->name << ", " << count << " blocks";
      }
    }
  }
  EXPECT_EQ(encoders, 20U);
}

// Rows of 512 numbers: sums of uniform ones, the same with a zero group or a constant one, with few bits, all positive,
// spikes, ternary, ramps of magnitudes. All are products of an integer and a power of two.
constexpr std::size_t kRows = 64, kColumns = 512;
std::vector<float> rows_to_encode() {
  std::mt19937 random(40);
  std::vector<float> out;
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t i = 0; i < kColumns; ++i) {
      int sum = 0;
      for (int k = 0; k < 4; ++k) sum += static_cast<int>(random() >> 14) - (1 << 17);
      const std::size_t kind = row % 8, group = i / 32;
      if (kind == 1) sum = group % 4 == 1 ? 0 : group % 4 == 2 ? 77777 : sum;
      if (kind == 2) sum = sum / 4096 * 4096;
      if (kind == 3) sum = sum < 0 ? -sum : sum;
      if (kind == 4) sum = i % 97 == 5 ? sum * 64 : sum / 64;
      if (kind == 5) sum = sum < -90000 ? -99991 : sum > 90000 ? 99991 : 0;
      const int power = kind == 6 ? static_cast<int>(group) - 30 : kind == 7 ? -60 : -22;
      out.push_back(std::ldexp(static_cast<float>(sum), power));
    }
  return out;
}

// CRC-32 of the blocks that GGML 0.25.3 makes of these rows, compiled by GCC 12 for x86-64 (-O3) and for processors
// with FMA (-O3 -march=haswell), without a matrix and with one. A compiler that contracts the encoders, or that does
// not round each operation, gives others.
struct OfGgml {
  Ggml type;
  std::uint32_t plain, matrix, contracted, contracted_matrix;
};
constexpr OfGgml kOfGgml[] = {
    {Ggml::q4_0, 0xe2b62869, 0xa6e25b89, 0x9c17319c, 0x21d6c290},
    {Ggml::q4_1, 0x13f71d19, 0xd34d5065, 0x13f71d19, 0x9940cdb0},
    {Ggml::q5_0, 0x49fceeca, 0xc2dc38a9, 0x0284b95a, 0x87b7444c},
    {Ggml::q5_1, 0x8555b804, 0xe2230cd1, 0x8555b804, 0x62891a7e},
    {Ggml::q8_0, 0x4f19e9cb, 0, 0x4f19e9cb, 0},
    {Ggml::q2_k, 0xf943a1f1, 0xd773ce4e, 0x1832904b, 0x083af3c6},
    {Ggml::q3_k, 0x0361629c, 0xf691213f, 0x398db1dc, 0x0a64874a},
    {Ggml::q4_k, 0x990fee8f, 0x5b66db48, 0x3b74126c, 0x9f923053},
    {Ggml::q5_k, 0xe3121b5c, 0xcc4088f8, 0x79908be0, 0xf875011d},
    {Ggml::q6_k, 0xfbd82ecd, 0x1120e839, 0xe355fd77, 0xd18782e7},
    {Ggml::iq2_xxs, 0, 0x535f0b4a, 0, 0x7865d108},
    {Ggml::iq2_xs, 0, 0x71825458, 0, 0x6b2b73d2},
    {Ggml::iq3_xxs, 0x8ba5d9f9, 0x40f66d4c, 0xc1e5b333, 0xdb082089},
    {Ggml::iq4_nl, 0x68f9cae9, 0x105ff784, 0xa32735dd, 0xa3767441},
    {Ggml::iq3_s, 0xde34c8c4, 0xa798b2d4, 0x9f2d055b, 0xa798b2d4},
    {Ggml::iq2_s, 0xca09c3ea, 0x153d96d9, 0x8c14dfa8, 0xa496dd60},
    {Ggml::iq4_xs, 0xa564fbed, 0x64773d56, 0x097887a1, 0xa546cfeb},
    {Ggml::tq1_0, 0x8560d0c7, 0, 0x8560d0c7, 0},
    {Ggml::tq2_0, 0x4f06b74e, 0, 0x4f06b74e, 0},
    {Ggml::mxfp4, 0xaf3ae6f4, 0, 0xaf3ae6f4, 0},
};

TEST(GgmlBlocks, EncodersGiveTheBytesOfGgmlAndOfItsContractedBuild) {
  const std::vector<float> rows = rows_to_encode();
  std::vector<float> importance(kColumns);
  for (std::size_t i = 0; i < kColumns; ++i)
    importance[i] = static_cast<float>(i % 11 == 3 ? 0 : i * i * 7919 % 1000) / 64;
  std::size_t unlike = 0;
  for (const OfGgml& expected : kOfGgml) {
    const auto t = static_cast<std::size_t>(expected.type);
    const std::size_t blocks = kColumns / kGgmlSizes[t].elements;
    const auto check = [&](const GgmlEncoders& encoders, const char* set, std::uint32_t plain, std::uint32_t matrix) {
      for (const bool with : {false, true}) {
        if ((with ? matrix : plain) == 0) continue;  // the type has no such mode
        std::vector<std::byte> out(kRows * blocks * kGgmlSizes[t].bytes);
        for (std::size_t r = 0; r < kRows; ++r)
          encoders[t](rows.data() + r * kColumns, {.importance = with ? importance.data() : nullptr, .as_ggml = true},
                      out.data() + r * blocks * kGgmlSizes[t].bytes, blocks);
        EXPECT_EQ(crc32(out), with ? matrix : plain) << kNames[t] << (with ? " with a matrix, " : ", ") << set;
      }
    };
    for (const Kernels* const set : all_kernels()) check(set->ggml_encode, set->name, expected.plain, expected.matrix);
    for (const GgmlEncoders* const set : all_contracted_encoders())
      check(*set, "contracted", expected.contracted, expected.contracted_matrix);
    unlike += expected.contracted != expected.plain || expected.contracted_matrix != expected.matrix;
  }
  EXPECT_GE(unlike, 12U);  // so many types show whether a build contracts
}

// Any group of a row, and any number of them.
TEST(GgmlBlocks, ImportanceIsReadWithEveryInstructionSet) {
  const std::vector<float> rows = rows_to_encode();
  for (const OfGgml& each : kOfGgml) {
    const auto t = static_cast<std::size_t>(each.type);
    const auto [elements, bytes] = kGgmlSizes[t];
    for (std::size_t count = 1; count <= kColumns / elements; ++count) {
      const std::vector<float> importance(rows.begin() + 3 * kColumns,
                                          rows.begin() + 3 * kColumns + static_cast<std::ptrdiff_t>(count * elements));
      std::vector<std::byte> expected(count * bytes), out(count * bytes);
      all_kernels()[0]->ggml_encode[t](rows.data(), {.importance = importance.data()}, expected.data(), count);
      for (const Kernels* const set : all_kernels()) {
        set->ggml_encode[t](rows.data(), {.importance = importance.data()}, out.data(), count);
        EXPECT_TRUE(out == expected) << kNames[t] << ", " << set->name << ", " << count << " blocks";
      }
    }
  }
}

TEST(GgmlBlocks, TheTableHasTheSizesOfEachType) {
  for (std::size_t t = 0; t < kGgmlCount; ++t) {
    const BlockTypeInfo* const row = find_block_type(std::string("ggml.") + kNames[t]);
    ASSERT_NE(row, nullptr) << kNames[t];
    EXPECT_EQ(row->name, kNames[t]);
    EXPECT_EQ(row->block_elements, kGgmlSizes[t].elements);
    EXPECT_EQ(row->block_bytes, kGgmlSizes[t].bytes);
    EXPECT_EQ(row->layout, Layout::quantized_block);
  }
}

}  // namespace
}  // namespace weighbridge::codecs

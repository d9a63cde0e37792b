// SPDX-License-Identifier: Apache-2.0
// Every instruction set gives the bits of the plain one at awkward sizes, and the plain one is correct.
#include "runtime/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "codecs/small_float.h"
#include "support/scaled_products.h"

namespace weighbridge::kernels {
namespace {

using testing::name, testing::numbers, testing::same_bits, testing::Shape;

std::vector<float> padded(std::vector<float> x) {
  x.resize(round_up(x.size(), kLanes));
  return x;
}

constexpr Shape kProductShapes[] = {{1, 1, 1},
                                    {1, 16, 3},
                                    {2, 17, 16},
                                    {3, 48, 33},
                                    {4, 49, 7},
                                    {5, 100, 31},
                                    {6, 144, 64},
                                    {7, 31, 20},
                                    {8, 384, 48},
                                    {9, 96, 17},
                                    {16, 64, 32},
                                    {23, 50, 18},
                                    {1, 64, 33},
                                    {1, 80, 20},
                                    {1, 96, 7},
                                    {1, 172, 64},
                                    {1, 257, 40},
                                    // Depths of several blocks of steps, groups of rows, tiles of unequal heights.
                                    {1, 48, 97},
                                    {1, 17, 400},
                                    {9, 96, 193},
                                    {15, 31, 385},
                                    {17, 97, 100},
                                    {127, 33, 98},
                                    {128, 16, 8},
                                    {129, 50, 97},
                                    {260, 18, 12}};

std::vector<float> product(const Kernels& set, const Shape& s, Activation activation, bool with_residual) {
  const auto a = numbers(s.m * s.k, 1), w = numbers(s.n * s.k, 2), bias = padded(numbers(s.n, 3));
  const auto residual = numbers(s.m * s.n, 4);
  std::vector<float> packed(packed_size(s.n, s.k), -1.0F), c(s.m * s.n, -1.0F);
  set.pack_f32(w.data(), s.k, s.n, s.k, packed.data());
  const ProductF32 task{
      {s.n, s.k, bias.data(), activation, with_residual ? residual.data() : nullptr, s.n, c.data(), s.n},
      a.data(),
      s.k,
      packed.data()};
  set.product_f32(task, {0, s.m, 0, panel_count(s.n)});
  return c;
}

TEST(Products, AreWhatTheyShouldBe) {
  for (const Shape& s : kProductShapes) {
    const auto a = numbers(s.m * s.k, 1), w = numbers(s.n * s.k, 2), bias = numbers(s.n, 3);
    const auto residual = numbers(s.m * s.n, 4);
    const auto c = product(*all_kernels()[0], s, Activation::none, true);
    for (std::size_t i = 0; i < s.m; ++i) {
      for (std::size_t j = 0; j < s.n; ++j) {
        float chain = bias[j];  // the contract, not an approximation: one chain in the order of k, then the residual
        for (std::size_t p = 0; p < s.k; ++p) chain = std::fma(a[i * s.k + p], w[j * s.k + p], chain);
        ASSERT_EQ(c[i * s.n + j], chain + residual[i * s.n + j]) << name(s);
      }
    }
  }
}

TEST(Products, HaveTheSameBitsInEverySet) {
  for (const Kernels* set : all_kernels())
    for (const Shape& s : kProductShapes)
      for (const Activation activation : {Activation::none, Activation::gelu, Activation::gelu_tanh})
        for (const bool residual : {false, true})
          EXPECT_TRUE(
              same_bits(product(*set, s, activation, residual), product(*all_kernels()[0], s, activation, residual)))
              << set->name << " " << name(s);
}

TEST(Products, OfHalvesAreThoseOfTheirValues) {
  for (const Shape& s : kProductShapes) {
    const auto a = numbers(s.m * s.k, 1), bias = padded(numbers(s.n, 3));
    // f16 values of every exponent that a sum can take, with subnormals and zeros.
    std::vector<std::uint16_t> w(packed_size(s.n, s.k));
    std::vector<float> same(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = static_cast<std::uint16_t>(i * 40503U % 0x4C00U | (i % 2 << 15));
      same[i] = std::bit_cast<float>(codecs::decode_float<codecs::kF16>(w[i]));
    }
    for (const Kernels* set : all_kernels()) {
      std::vector<float> c(s.m * s.n), expected(s.m * s.n);
      const Range all{0, s.m, 0, panel_count(s.n)};
      Product common{s.n, s.k, bias.data(), Activation::gelu, nullptr, 0, c.data(), s.n};
      set->product_f16({common, a.data(), s.k, w.data()}, all);
      common.c = expected.data();
      all_kernels()[0]->product_f32({common, a.data(), s.k, same.data()}, all);
      EXPECT_TRUE(same_bits(c, expected)) << set->name << " " << name(s);
    }
  }
}

TEST(Products, OfBf16AreThoseOfTheirValues) {
  for (const Shape& s : kProductShapes) {
    const auto a = numbers(s.m * s.k, 1), bias = padded(numbers(s.n, 3)), noise = numbers(packed_size(s.n, s.k), 4);
    std::vector<Bf16> w(noise.size());
    std::vector<float> same(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(noise[i]) >> 16);
      same[i] = std::bit_cast<float>(std::uint32_t{w[i].bits} << 16);
    }
    for (const Kernels* set : all_kernels()) {
      std::vector<float> c(s.m * s.n), expected(s.m * s.n);
      const Range all{0, s.m, 0, panel_count(s.n)};
      Product common{s.n, s.k, bias.data(), Activation::none, nullptr, 0, c.data(), s.n};
      set->product_bf16({common, a.data(), s.k, w.data()}, all);
      common.c = expected.data();
      all_kernels()[0]->product_f32({common, a.data(), s.k, same.data()}, all);
      EXPECT_TRUE(same_bits(c, expected)) << set->name << " " << name(s);
    }
  }
}

TEST(Products, DoNotDependOnHowTheyAreSharedOut) {
  const Shape s{19, 150, 40};
  const auto a = numbers(s.m * s.k, 1), w = numbers(s.n * s.k, 2), bias = padded(numbers(s.n, 3));
  for (const Kernels* set : all_kernels()) {
    std::vector<float> packed(packed_size(s.n, s.k)), whole(s.m * s.n), parts(s.m * s.n);
    set->pack_f32(w.data(), s.k, s.n, s.k, packed.data());
    ProductF32 task{
        {s.n, s.k, bias.data(), Activation::gelu, nullptr, 0, whole.data(), s.n}, a.data(), s.k, packed.data()};
    set->product_f32(task, {0, s.m, 0, panel_count(s.n)});
    task.c = parts.data();
    for (std::size_t panel = 0; panel < panel_count(s.n); ++panel)
      for (std::size_t row = 0; row < s.m; row += 5)
        set->product_f32(task, {row, std::min(row + 5, s.m), panel, panel + 1});
    EXPECT_TRUE(same_bits(whole, parts)) << set->name;
  }
}

// x * Phi(x) element by element, as the activation of a product with a matrix of one.
std::vector<float> activated(const Kernels& set, std::vector<float> x, Activation activation) {
  const float one = 1;
  const std::vector<float> bias(kLanes);
  std::vector<float> packed(packed_size(1, 1)), out(x.size());
  set.pack_f32(&one, 1, 1, 1, packed.data());
  const ProductF32 task{{1, 1, bias.data(), activation, nullptr, 0, out.data(), 1}, x.data(), 1, packed.data()};
  set.product_f32(task, {0, x.size(), 0, 1});
  return out;
}

TEST(Activations, AreCloseToTheFunctions) {
  std::vector<float> x;
  for (float at = -14; at <= 14; at += 0.001F) x.push_back(at);
  for (const float at : {-1e30F, -100.0F, -0.0F, 0.0F, 1e-30F, 100.0F, 1e30F}) x.push_back(at);
  const auto exact = activated(*all_kernels()[0], x, Activation::gelu);
  const auto tanh_form = activated(*all_kernels()[0], x, Activation::gelu_tanh);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], size = std::max(1.0, std::fabs(v));
    EXPECT_NEAR(exact[i], 0.5 * v * std::erfc(-v / std::sqrt(2.0)), 1.2e-7 * size) << v;
    const double inner = std::sqrt(2.0 / 3.14159265358979323846) * (v + 0.044715 * v * v * v);
    EXPECT_NEAR(tanh_form[i], v / (1 + std::exp(-2 * inner)), 2.4e-7 * size) << v;
  }
  for (const Kernels* set : all_kernels()) {
    EXPECT_TRUE(same_bits(activated(*set, x, Activation::gelu), exact)) << set->name;
    EXPECT_TRUE(same_bits(activated(*set, x, Activation::gelu_tanh), tanh_form)) << set->name;
  }
}

std::vector<float> attended(const Kernels& set, std::size_t length, std::size_t head) {
  const std::size_t stride = 3 * head + 5;
  const auto x = numbers(length * stride, length + head, 1.5F);
  std::vector<float> out(length * head, -1.0F), room(attention_scratch(length, head) + kLanes);
  auto* scratch = room.data();
  while (std::bit_cast<std::uintptr_t>(scratch) % 64 != 0) ++scratch;
  set.attention(
      {x.data(), x.data() + head, x.data() + 2 * head, stride, length, head, 0.3F, out.data(), head, scratch});
  return out;
}

TEST(Attention, IsRightAndTheSameInEverySet) {
  for (const std::size_t length : std::initializer_list<std::size_t>{1, 2, 7, 15, 16, 17, 47, 48, 49, 127, 130}) {
    for (const std::size_t head : std::initializer_list<std::size_t>{1, 8, 16, 32, 40, 64}) {
      const auto plain = attended(*all_kernels()[0], length, head);
      const std::size_t stride = 3 * head + 5;
      const auto x = numbers(length * stride, length + head, 1.5F);
      for (std::size_t i = 0; i < length; ++i) {
        std::vector<double> weights(length);
        double sum = 0;
        for (std::size_t j = 0; j < length; ++j) {
          double dot = 0;
          for (std::size_t d = 0; d < head; ++d) dot += double{x[i * stride + d]} * double{x[j * stride + head + d]};
          sum += weights[j] = std::exp(0.3 * dot);
        }
        for (std::size_t d = 0; d < head; ++d) {
          double value = 0;
          for (std::size_t j = 0; j < length; ++j) value += weights[j] / sum * double{x[j * stride + 2 * head + d]};
          ASSERT_NEAR(plain[i * head + d], value, 2e-5) << length << " " << head;
        }
      }
      for (const Kernels* set : all_kernels()) EXPECT_TRUE(same_bits(attended(*set, length, head), plain)) << set->name;
    }
  }
}

TEST(Rows, AreNormalizedPooledAndAddedAlike) {
  for (const std::size_t width : std::initializer_list<std::size_t>{1, 5, 16, 31, 32, 100, 384}) {
    const std::size_t rows = 5;
    const auto x = numbers(rows * width, width), gamma = numbers(width, 7), beta = numbers(width, 8);
    std::vector<std::vector<float>> first;
    for (const Kernels* set : all_kernels()) {
      std::vector<std::vector<float>> results(5, x);
      set->layer_norm(results[0].data(), rows, width, gamma.data(), beta.data(), 1e-12F);
      set->mean(x.data(), rows, width, results[1].data());
      set->max(x.data(), rows, width, results[2].data());
      set->normalize(results[3].data(), width);
      set->add(x.data(), gamma.data(), results[4].data(), width);
      if (first.empty()) first = results;
      for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(same_bits(results[i], first[i])) << set->name << i;
    }
    for (std::size_t j = 0; j < width; ++j) {
      double mean = 0, variance = 0, total = 0, maximum = -9;
      for (std::size_t d = 0; d < width; ++d) mean += double{x[d]} / static_cast<double>(width);
      for (std::size_t d = 0; d < width; ++d) variance += std::pow(double{x[d]} - mean, 2) / static_cast<double>(width);
      for (std::size_t r = 0; r < rows; ++r) {
        total += double{x[r * width + j]};
        maximum = std::max(maximum, double{x[r * width + j]});
      }
      EXPECT_NEAR(first[0][j], (x[j] - mean) / std::sqrt(variance + 1e-12) * gamma[j] + beta[j], 2e-5) << width;
      EXPECT_NEAR(first[1][j], total / static_cast<double>(rows), 1e-6);
      EXPECT_EQ(first[2][j], maximum);
      EXPECT_EQ(first[4][j], x[j] + gamma[j]);
    }
  }
}

TEST(Rows, ThatAreNotFiniteAreFound) {
  for (const Kernels* set : all_kernels()) {
    for (const std::size_t n : std::initializer_list<std::size_t>{1, 15, 16, 17, 100}) {
      std::vector<float> x = numbers(n, 1);
      EXPECT_TRUE(set->all_finite(x.data(), n)) << set->name;
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
          const float before = std::exchange(x[at], bad);
          EXPECT_FALSE(set->all_finite(x.data(), n)) << set->name;
          x[at] = before;
        }
      }
    }
  }
}

struct Quantized {
  std::vector<std::uint8_t> codes;
  std::vector<CodedRow> rows;
};
Quantized quantized(const Kernels& set, const std::vector<float>& a, std::size_t m, std::size_t k,
                    decltype(&Kernels::quantize_row) quantize = &Kernels::quantize_row) {
  Quantized out{std::vector<std::uint8_t>(m * int8_depth(k), 7), std::vector<CodedRow>(m)};
  for (std::size_t i = 0; i < m; ++i)
    out.rows[i] = (set.*quantize)(a.data() + i * k, k, out.codes.data() + i * int8_depth(k));
  return out;
}
// What element p of row i means.
double meaning(const Quantized& coded, std::size_t i, std::size_t p, std::size_t k) {
  const CodedRow& row = coded.rows[i];
  const double outlier = p == row.apart ? double{row.outlier} : 0.0;
  return double{row.scale} * (coded.codes[i * int8_depth(k) + p] - row.zero + outlier);
}

TEST(Int8, RowsAreQuantizedByTheirOwnRange) {
  for (const std::size_t k : std::initializer_list<std::size_t>{1, 3, 16, 21, 64}) {
    auto a = numbers(4 * k, k, 3.0F);
    for (std::size_t i = 0; i < k; ++i) a[i] = 0;  // a row of zeros must have a scale too
    for (std::size_t i = k; i < 2 * k; ++i) a[i] = std::fabs(a[i]);
    for (const auto quantize : {&Kernels::quantize_row, &Kernels::quantize_row_apart}) {
      const Quantized plain = quantized(*all_kernels()[0], a, 4, k, quantize);
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t p = 0; p < k; ++p)
          EXPECT_NEAR(meaning(plain, i, p, k), double{a[i * k + p]}, double{plain.rows[i].scale} * 0.51 + 1e-6);
      for (const Kernels* set : all_kernels()) {
        const Quantized other = quantized(*set, a, 4, k, quantize);
        EXPECT_EQ(other.codes, plain.codes) << set->name;
        for (std::size_t i = 0; i < 4; ++i) {
          EXPECT_EQ(other.rows[i].scale, plain.rows[i].scale) << set->name;
          EXPECT_EQ(other.rows[i].zero, plain.rows[i].zero) << set->name;
          EXPECT_EQ(other.rows[i].apart, plain.rows[i].apart) << set->name;
          EXPECT_EQ(other.rows[i].outlier, plain.rows[i].outlier) << set->name;
        }
      }
    }
  }
}

TEST(Int8, WeightsArePackedAlikeByAllSets) {
  for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{1, 1}, {16, 16}, {50, 21}, {49, 130}}) {
    auto w = numbers(n * k, k);
    std::fill_n(w.begin(), k, 0.0F);  // a row of zeros must have a scale too
    std::vector<std::int8_t> packed[2];
    std::vector<float> scale(round_up(n, kLanes));
    std::vector<std::int32_t> sum(scale.size());
    for (const Kernels* set : all_kernels()) {
      const bool plain = packed[0].empty();
      std::vector<std::int8_t>& out = packed[plain ? 0 : 1];
      out.assign(packed_size(n, int8_depth(k)), 99);
      set->pack_i8(w.data(), n, k, out.data(), scale.data(), sum.data());
      EXPECT_EQ(out, packed[0]) << set->name;
      for (std::size_t i = 0; i < n; ++i) {
        std::int32_t total = 0;
        const std::size_t panel = i / kPanel, width = panel_width(n, panel);
        for (std::size_t p = 0; p < k; ++p) {
          const int code = out[panel * kPanel * int8_depth(k) + p / 4 * 4 * width + 4 * (i % kPanel) + p % 4];
          EXPECT_NEAR(double{scale[i]} * code, double{w[i * k + p]}, double{scale[i]} * 0.5001) << set->name;
          total += code;
        }
        EXPECT_EQ(sum[i], total) << set->name;
      }
    }
  }
}

TEST(Int8, OneElementFarFromTheOthersIsExactAndLeavesThemTheRange) {
  const std::size_t k = 100;
  for (const float far : {1000.0F, -1000.0F, 1e20F, -1e20F}) {
    for (const std::size_t at : std::initializer_list<std::size_t>{0, 17, 99}) {
      auto a = numbers(k, at);
      a[at] = far;
      for (const Kernels* set : all_kernels()) {
        const Quantized coded = quantized(*set, a, 1, k, &Kernels::quantize_row_apart);
        EXPECT_EQ(coded.rows[0].apart, at) << set->name;
        EXPECT_NEAR(meaning(coded, 0, at, k) / double{far}, 1.0, 1e-6) << set->name;
        EXPECT_LT(coded.rows[0].scale, 0.02F) << set->name;
        for (std::size_t p = 0; p < k; ++p) {
          if (p == at) continue;
          EXPECT_NEAR(meaning(coded, 0, p, k), double{a[p]}, 0.01) << set->name;
        }
      }
    }
  }
}

TEST(Int8, OneElementAmongZerosOrNextToNothingKeepsItsValue) {
  const std::size_t k = 20;
  for (const float others : {0.0F, 1e-38F}) {
    for (const float far : {3.0e38F, -3.0e38F, 1.0F}) {
      std::vector<float> a(k, others);
      a[3] = far;
      for (const Kernels* set : all_kernels()) {
        const Quantized coded = quantized(*set, a, 1, k, &Kernels::quantize_row_apart);
        EXPECT_NEAR(meaning(coded, 0, 3, k) / double{far}, 1.0, 1e-6) << set->name;
        EXPECT_TRUE(std::isfinite(coded.rows[0].outlier)) << set->name;
        for (std::size_t p = 4; p < k; ++p) EXPECT_NEAR(meaning(coded, 0, p, k), 0.0, 1e-30) << set->name;
      }
    }
  }
}

TEST(Int8, TwoElementsFarFromTheOthersKeepTheirValues) {
  const std::size_t k = 40;
  for (const auto& [one, two] : {std::pair{50.0F, 50.0F}, {-50.0F, -50.0F}, {50.0F, -50.0F}, {50.0F, 49.0F}}) {
    auto a = numbers(k, 3);
    a[5] = one;
    a[21] = two;  // in the same lane
    for (const Kernels* set : all_kernels()) {
      const Quantized coded = quantized(*set, a, 1, k, &Kernels::quantize_row_apart);
      for (std::size_t p = 0; p < k; ++p) EXPECT_NEAR(meaning(coded, 0, p, k), double{a[p]}, 0.21) << set->name;
    }
  }
}

TEST(Int8, ProductsAreThoseOfTheCodes) {
  for (const Shape& s : kProductShapes) {
    const auto a = numbers(s.m * s.k, 1), w = numbers(s.n * s.k, 2), bias = padded(numbers(s.n, 3));
    const Quantized codes = quantized(*all_kernels()[0], a, s.m, s.k, &Kernels::quantize_row_apart);
    std::vector<std::int8_t> packed(packed_size(s.n, int8_depth(s.k)));
    std::vector<float> scale(bias.size());
    std::vector<std::int32_t> sum(bias.size());
    kernels().pack_i8(w.data(), s.n, s.k, packed.data(), scale.data(), sum.data());
    const auto product = [&](const Kernels& set, Activation activation, const float* residual) {
      std::vector<float> c(s.m * s.n, -1.0F);
      const ProductI8 task{{s.n, s.k, bias.data(), activation, residual, s.n, c.data(), s.n},
                           codes.codes.data(),
                           int8_depth(s.k),
                           codes.rows.data(),
                           packed.data(),
                           scale.data(),
                           sum.data()};
      set.product_i8(task, {0, s.m, 0, panel_count(s.n)});
      return c;
    };
    const auto residual = numbers(s.m * s.n, 4);
    for (const Kernels* set : all_kernels())
      for (const Activation activation : {Activation::none, Activation::gelu, Activation::gelu_tanh})
        for (const float* more : {static_cast<const float*>(nullptr), residual.data()})
          EXPECT_TRUE(same_bits(product(*set, activation, more), product(*all_kernels()[0], activation, more)))
              << set->name << " " << name(s);
    const std::vector<float> first = product(kernels(), Activation::none, nullptr);
    for (std::size_t i = 0; i < s.m; ++i) {
      for (std::size_t j = 0; j < s.n; ++j) {
        double value = bias[j];
        for (std::size_t p = 0; p < s.k; ++p) {
          const double code = std::nearbyint(double{w[j * s.k + p]} / double{scale[j]});
          value += code * double{scale[j]} * meaning(codes, i, p, s.k);
        }
        ASSERT_NEAR(first[i * s.n + j], value, 0.02) << name(s);
      }
    }
  }
}

// All codes are the largest: the saturating instruction for bytes would give another sum.
TEST(Int8, SumsDoNotSaturate) {
  const std::size_t k = 64;
  const std::vector<float> w(16 * k, 1.0F), bias(16);
  std::vector<std::int8_t> packed(packed_size(16, k));
  std::vector<float> scale(16);
  std::vector<std::int32_t> sum(16);
  kernels().pack_i8(w.data(), 16, k, packed.data(), scale.data(), sum.data());
  const std::vector<std::uint8_t> codes(k, 255);
  const CodedRow row;
  for (const Kernels* set : all_kernels()) {
    std::vector<float> c(16);
    set->product_i8({{16, k, bias.data(), Activation::none, nullptr, 0, c.data(), 16},
                     codes.data(),
                     k,
                     &row,
                     packed.data(),
                     scale.data(),
                     sum.data()},
                    {0, 1, 0, 1});
    for (const float value : c) EXPECT_FLOAT_EQ(value, 255.0F * 64.0F) << set->name;
  }
}

// The farthest zero times the largest sums of codes: the AVX-512 set multiplies in words as long as they fit.
TEST(Int8, TheZeroIsTakenOffExactlyHoweverLongARowIs) {
  for (const std::size_t k : {std::size_t{32764}, std::size_t{32768}, std::size_t{65536}}) {
    for (const float sign : {1.0F, -1.0F}) {
      const std::vector<float> w(16 * k, sign * 127.0F), bias(16);
      std::vector<std::int8_t> packed(packed_size(16, k));
      std::vector<float> scale(16);
      std::vector<std::int32_t> sum(16);
      kernels().pack_i8(w.data(), 16, k, packed.data(), scale.data(), sum.data());
      const std::vector<std::uint8_t> codes(2 * k, 254);
      const CodedRow rows[] = {{.zero = 255}, {.zero = 1}};
      for (const Kernels* set : all_kernels()) {
        std::vector<float> c(32);
        set->product_i8({{16, k, bias.data(), Activation::none, nullptr, 0, c.data(), 16},
                         codes.data(),
                         k,
                         rows,
                         packed.data(),
                         scale.data(),
                         sum.data()},
                        {0, 2, 0, 1});
        EXPECT_EQ(c[3], -sign * 127.0F * static_cast<float>(k)) << set->name << " " << k;
        EXPECT_EQ(c[16], sign * static_cast<float>(std::int64_t{127} * 253 * static_cast<std::int64_t>(k)))
            << set->name;
      }
    }
  }
}

}  // namespace
}  // namespace weighbridge::kernels

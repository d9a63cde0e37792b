// SPDX-License-Identifier: Apache-2.0
// Products in f16 give the bits of a twin that computes each operation in double and rounds it once, at awkward sizes
// and with extreme numbers. Skips where the processor has no f16 arithmetic.
#include "runtime/kernels/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "codecs/small_float.h"
#include "support/scaled_products.h"

namespace weighbridge::kernels {
namespace {

using testing::activated, testing::kScaledShapes, testing::Matrices, testing::matrices, testing::name, testing::numbers,
    testing::same_bits, testing::Scaled, testing::Shape;

#define WB_REQUIRE_HALF() \
  if (half_kernels() == nullptr) GTEST_SKIP() << "this processor has no AVX512-FP16"

// ---- the twin ----

// The nearest f16, even on a tie.
double round_to_half(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| is in [2^(exponent - 1), 2^exponent)
  const double unit = std::ldexp(1.0, std::max(exponent, -13) - 11);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) < 65536 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}
// a * b + c of f16 values, rounded once: double holds the sum exactly, unless the product is too small to affect c or
// the sum exceeds f16.
double fma_half(double a, double b, double c) { return round_to_half(a * b + c); }

Scaled scaled(const float* x, std::size_t n) { return testing::scaled(x, n, round_to_half); }

float sum_in_half(const std::vector<double>& a, const std::vector<double>& w) {
  float sum = 0;
  for (std::size_t begin = 0; begin < a.size(); begin += kHalfChain) {
    double chain = 0;
    for (std::size_t p = begin; p < std::min(begin + kHalfChain, a.size()); ++p) chain = fma_half(a[p], w[p], chain);
    sum += static_cast<float>(chain);
  }
  return sum;
}
std::vector<float> half_twin(const Matrices& in, const Shape& s) {
  return testing::twin(in, s, round_to_half, sum_in_half);
}

// ---- reference values ----

std::vector<float> product(const Matrices& in, const Shape& s, Activation activation, const float* residual,
                           std::size_t rows = 1000, std::size_t panels = 1000) {
  const HalfKernels& half = *half_kernels();
  std::vector<std::uint16_t> w(half_packed_size(s.n, s.k), 0x7C00);
  std::vector<std::uint32_t> a(s.m * s.k);
  std::vector<float> a_scale(s.m), w_scale(in.bias.size()), c(s.m * s.n, -1.0F);
  half.pack(in.w.data(), s.n, s.k, w.data(), w_scale.data());
  for (std::size_t i = 0; i < s.m; ++i) half.halve_row(in.a.data() + i * s.k, s.k, a.data() + i * s.k, a_scale[i]);
  const ProductHalf task{{s.n, s.k, in.bias.data(), activation, residual, s.n, c.data(), s.n},
                         a.data(),
                         s.k,
                         a_scale.data(),
                         w.data(),
                         w_scale.data()};
  for (std::size_t panel = 0; panel < half_panel_count(s.n); panel += panels)
    for (std::size_t row = 0; row < s.m; row += rows)
      half.product(task, {row, std::min(row + rows, s.m), panel, std::min(panel + panels, half_panel_count(s.n))});
  return c;
}

// ---- tests ----

TEST(Halves, TheTwinRoundsOnce) {
  const double minimum = std::ldexp(1.0, -24);
  EXPECT_EQ(round_to_half(1 + std::ldexp(1.0, -11)), 1.0);
  EXPECT_EQ(round_to_half(1 + std::ldexp(3.0, -11)), 1 + std::ldexp(1.0, -9));
  EXPECT_EQ(fma_half(3, 683, 0), 2048.0);        // 2049 is a tie
  EXPECT_EQ(fma_half(3, 683, minimum), 2050.0);  // just past the tie; rounding the product first would not show it
  EXPECT_EQ(round_to_half(65519), 65504.0);
  EXPECT_EQ(round_to_half(65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(round_to_half(1.5 * minimum), 2 * minimum);
  EXPECT_EQ(round_to_half(0.5 * minimum), 0.0);
}

TEST(Halves, RowsAreScaledAndRoundedToTheNearest) {
  WB_REQUIRE_HALF();
  std::vector<std::vector<float>> rows{{0.0F},
                                       {-0.0F, 0.0F},
                                       {1e-45F},
                                       {1e-38F, -3e-39F},
                                       {3.4e38F, 1.0F},
                                       {-15.9999F, 16.0F},
                                       {1.0F, std::ldexp(1.0F, -30)}};
  for (const std::size_t n : std::initializer_list<std::size_t>{1, 15, 16, 17, 100})
    rows.push_back(numbers(n, n, 3e4F));
  for (const auto& row : rows) {
    std::vector<std::uint32_t> halves(row.size() + 1, 7);
    float scale = 0;
    half_kernels()->halve_row(row.data(), row.size(), halves.data(), scale);
    const Scaled expected = scaled(row.data(), row.size());
    EXPECT_EQ(scale, expected.scale);
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(halves[i] >> 16, halves[i] & 0xFFFFU);
      EXPECT_EQ(std::bit_cast<float>(codecs::decode_float<codecs::kF16>(static_cast<std::uint16_t>(halves[i]))),
                expected.values[i]);
    }
    EXPECT_EQ(halves.back(), 7U);
  }
}

TEST(Halves, ProductsAreThoseOfTheTwin) {
  WB_REQUIRE_HALF();
  for (const Shape& s : kScaledShapes) {
    const Matrices in = matrices(s);
    const auto expected = half_twin(in, s);
    EXPECT_TRUE(same_bits(product(in, s, Activation::none, nullptr), expected)) << name(s);
    const auto residual = numbers(s.m * s.n, 4);
    auto with_residual = expected;
    for (std::size_t i = 0; i < residual.size(); ++i) with_residual[i] += residual[i];
    EXPECT_TRUE(same_bits(product(in, s, Activation::none, residual.data()), with_residual)) << name(s);
  }
}

TEST(Halves, AreActivated) {
  WB_REQUIRE_HALF();
  const Shape s{9, 97, 70};
  const Matrices in = matrices(s);
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh})
    EXPECT_TRUE(same_bits(product(in, s, activation, nullptr), activated(half_twin(in, s), activation)));
}

TEST(Halves, DoNotDependOnHowTheyAreSharedOut) {
  WB_REQUIRE_HALF();
  const Shape s{21, 300, 100};
  const Matrices in = matrices(s);
  const auto whole = product(in, s, Activation::gelu, nullptr);
  for (const std::size_t rows : std::initializer_list<std::size_t>{1, 5, 8, 20})
    EXPECT_TRUE(same_bits(product(in, s, Activation::gelu, nullptr, rows, 1), whole)) << rows;
}

// Rows of one sign at the largest magnitude, outliers far beyond the range of f16, and rows near zero.
TEST(Halves, DoNotOverflow) {
  WB_REQUIRE_HALF();
  const Shape s{5, 40, 192};
  Matrices in{std::vector<float>(s.m * s.k, 15.9999F), std::vector<float>(s.n * s.k, 65504.0F),
              std::vector<float>(round_up(s.n, kLanes))};
  std::fill_n(in.a.begin() + static_cast<std::ptrdiff_t>(s.k), s.k, 1e30F);
  std::fill_n(in.a.begin() + static_cast<std::ptrdiff_t>(2 * s.k), s.k, 1e-40F);
  std::fill_n(in.a.begin() + static_cast<std::ptrdiff_t>(3 * s.k), s.k, 0.0F);
  in.a[4 * s.k + 3] = -3e9F;
  in.w[7] = -1e-7F;
  const auto c = product(in, s, Activation::none, nullptr);
  EXPECT_TRUE(same_bits(c, half_twin(in, s)));
  for (std::size_t i = 0; i < s.m; ++i) {
    double expected = 0;
    for (std::size_t p = 0; p < s.k; ++p) expected += double{in.a[i * s.k + p]} * double{in.w[s.k + p]};
    // Equal products all round in the same direction: a chain of 64 loses up to 64 / 2^12 of its sum.
    EXPECT_NEAR(c[i * s.n + 1], expected, std::fabs(expected) * 0.016) << i;
  }
}

}  // namespace
}  // namespace weighbridge::kernels

// SPDX-License-Identifier: Apache-2.0
// Products in bf16 give the bits of a twin that rounds once for each operation, in every set: with the instruction for
// pairs and without, and whether the processor computes with subnormal numbers or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/kernels/kernels.h"
#include "support/scaled_products.h"

namespace weighbridge::kernels {
namespace {

using testing::activated, testing::kScaledShapes, testing::Matrices, testing::matrices, testing::name, testing::numbers,
    testing::same_bits, testing::Shape;

// ---- the twin ----

// The nearest bf16, even on a tie; 0 for what is below 2^-56.
float round_to_bf16(double value) {
  if (std::fabs(value) < std::ldexp(1.0, -56)) return 0.0F;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| is in [2^(exponent - 1), 2^exponent)
  const double unit = std::ldexp(1.0, exponent - 8);
  return static_cast<float>(std::nearbyint(value / unit) * unit);
}

// The product of two bf16 is a float, so each step rounds once.
float sum_in_bf16(const std::vector<double>& a, const std::vector<double>& w) {
  float sum = 0;
  for (std::size_t p = 0; p < a.size(); p += 2) {
    if (p + 1 < a.size()) sum += static_cast<float>(a[p + 1] * w[p + 1]);
    sum += static_cast<float>(a[p] * w[p]);
  }
  return sum;
}
std::vector<float> bf16_twin(const Matrices& in, const Shape& s) {
  return testing::twin(in, s, round_to_bf16, sum_in_bf16);
}

// ---- the sets ----

std::vector<float> product(const Kernels& set, const Matrices& in, const Shape& s, Activation activation,
                           const float* residual, std::size_t rows = 1000, std::size_t panels = 1000) {
  const std::size_t depth = bf16_depth(s.k);
  std::vector<Bf16> w(packed_size(s.n, depth), Bf16{0x7FC0});
  std::vector<std::byte> a(s.m * depth * set.bf16_bytes, std::byte{0xFF});
  std::vector<float> a_scale(s.m), w_scale(in.bias.size()), c(s.m * s.n, -1.0F);
  set.pack_bf16_pairs(in.w.data(), s.n, s.k, w.data(), w_scale.data());
  for (std::size_t i = 0; i < s.m; ++i)
    a_scale[i] = set.pair_row(in.a.data() + i * s.k, s.k, a.data() + i * depth * set.bf16_bytes);
  const ProductBf16Pairs task{{s.n, s.k, in.bias.data(), activation, residual, s.n, c.data(), s.n},
                              a.data(),
                              a_scale.data(),
                              w.data(),
                              w_scale.data()};
  for (std::size_t panel = 0; panel < panel_count(s.n); panel += panels)
    for (std::size_t row = 0; row < s.m; row += rows)
      set.product_bf16_pairs(task, {row, std::min(row + rows, s.m), panel, std::min(panel + panels, panel_count(s.n))});
  return c;
}

// ---- tests ----

TEST(Bf16Pairs, TheTwinRoundsToTheNearest) {
  EXPECT_EQ(round_to_bf16(1 + std::ldexp(1.0, -8)), 1.0F);
  EXPECT_EQ(round_to_bf16(1 + std::ldexp(3.0, -8)), 1 + std::ldexp(1.0F, -6));
  EXPECT_EQ(round_to_bf16(-15.999), -16.0F);
  EXPECT_EQ(round_to_bf16(std::ldexp(1.0, -56)), std::ldexp(1.0F, -56));
  EXPECT_EQ(round_to_bf16(std::ldexp(1.999, -57)), 0.0F);
}

TEST(Bf16Pairs, ProductsAreThoseOfTheTwin) {
  for (const Kernels* set : all_kernels()) {
    for (const Shape& s : kScaledShapes) {
      const Matrices in = matrices(s);
      const auto expected = bf16_twin(in, s);
      EXPECT_TRUE(same_bits(product(*set, in, s, Activation::none, nullptr), expected)) << set->name << " " << name(s);
      const auto residual = numbers(s.m * s.n, 4);
      auto with_residual = expected;
      for (std::size_t i = 0; i < residual.size(); ++i) with_residual[i] += residual[i];
      EXPECT_TRUE(same_bits(product(*set, in, s, Activation::none, residual.data()), with_residual))
          << set->name << " " << name(s);
    }
  }
}

TEST(Bf16Pairs, AreActivated) {
  const Shape s{9, 97, 70};
  const Matrices in = matrices(s);
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
    const auto expected = activated(bf16_twin(in, s), activation);
    for (const Kernels* set : all_kernels())
      EXPECT_TRUE(same_bits(product(*set, in, s, activation, nullptr), expected)) << set->name;
  }
}

TEST(Bf16Pairs, DoNotDependOnHowTheyAreSharedOut) {
  const Shape s{21, 300, 101};
  const Matrices in = matrices(s);
  for (const Kernels* set : all_kernels()) {
    const auto whole = product(*set, in, s, Activation::gelu, nullptr);
    for (const std::size_t rows : std::initializer_list<std::size_t>{1, 5, 8, 20})
      EXPECT_TRUE(same_bits(product(*set, in, s, Activation::gelu, nullptr, rows, 1), whole)) << set->name << rows;
  }
}

// Rows at the ends of f32, and rows whose elements differ by more than bf16 sums could hold without a scale.
Matrices extreme(const Shape& s) {
  Matrices in = matrices(s);
  std::fill_n(in.a.begin(), s.k, 3e38F);
  std::fill_n(in.a.begin() + static_cast<std::ptrdiff_t>(s.k), s.k, 1e-37F);
  std::fill_n(in.a.begin() + static_cast<std::ptrdiff_t>(2 * s.k), s.k, 0.0F);
  in.a[3 * s.k + 5] = -3e30F;
  for (std::size_t p = 1; p < s.k; ++p) in.a[4 * s.k + p] = std::ldexp(in.a[4 * s.k + p], -static_cast<int>(p % 70));
  for (std::size_t p = 1; p < s.k; ++p) in.w[s.k + p] = std::ldexp(in.w[s.k + p], -static_cast<int>(p % 70));
  in.a[4 * s.k] = in.w[s.k] = 0;  // so that only small numbers remain to be summed
  in.a[4 * s.k + 1] = in.w[s.k + 2] = 8;
  in.a[4 * s.k + 2] = in.w[s.k + 1] = 0;
  return in;
}

TEST(Bf16Pairs, ExtremesAreThoseOfTheTwin) {
  const Shape s{5, 40, 192};
  const Matrices in = extreme(s);
  const auto expected = bf16_twin(in, s);
  EXPECT_TRUE(std::all_of(expected.begin() + static_cast<std::ptrdiff_t>(s.n), expected.end(),
                          [](float value) { return std::isfinite(value); }));
  for (const Kernels* set : all_kernels())
    EXPECT_TRUE(same_bits(product(*set, in, s, Activation::none, nullptr), expected)) << set->name;
}

TEST(Bf16Pairs, NoSumIsSubnormal) {
#if defined(__x86_64__)
  const Shape s{5, 40, 192};
  const Matrices in = extreme(s);
  for (const Kernels* set : all_kernels()) {
    const auto expected = product(*set, in, s, Activation::none, nullptr);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040U);  // subnormal numbers, read or made, become 0
    const auto flushed = product(*set, in, s, Activation::none, nullptr);
    _mm_setcsr(before);
    EXPECT_TRUE(same_bits(flushed, expected)) << set->name;
  }
#else
  GTEST_SKIP() << "only x86-64 has a switch for subnormal numbers that this test knows";
#endif
}

// A row of infinities, which hostile weights can cause, stays one, and changes no other row.
TEST(Bf16Pairs, WhatIsNotFiniteStays) {
  const Shape s{2, 20, 30};
  Matrices in = matrices(s);
  const auto expected = bf16_twin(in, s);
  in.a[3] = std::numeric_limits<float>::infinity();
  for (const Kernels* set : all_kernels()) {
    const auto c = product(*set, in, s, Activation::none, nullptr);
    for (std::size_t j = 0; j < s.n; ++j) {
      EXPECT_FALSE(std::isfinite(c[j])) << set->name << j;
      EXPECT_EQ(c[s.n + j], expected[s.n + j]) << set->name << j;
    }
  }
}

}  // namespace
}  // namespace weighbridge::kernels

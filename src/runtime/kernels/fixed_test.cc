// SPDX-License-Identifier: Apache-2.0
// Products of f32 activations with quantized weights, in fixed point: within 2^-22 of exact sums in double, the same
// bits from every instruction set, and for a row alone and among others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "support/kernel_numbers.h"

namespace weighbridge::kernels {
namespace {

using testing::numbers, testing::same_bits;

struct CodesShape {
  std::size_t m, n, k, block;
};
constexpr CodesShape kCodesShapes[] = {{1, 1, 32, 32},   {1, 48, 64, 32},   {1, 100, 288, 32},
                                       {2, 17, 96, 96},  {3, 100, 288, 32}, {8, 144, 32, 32},
                                       {9, 33, 128, 64}, {13, 16, 64, 32},  {17, 97, 160, 32}};
constexpr CodesShape kRowShapes[] = {{1, 1, 1, 0}, {1, 50, 7, 0}, {2, 33, 172, 0}, {11, 96, 65, 0}, {6, 17, 1100, 0}};

// Rows that an 8-bit or a careless fixed point would lose, after one of ordinary numbers.
std::vector<float> activations(std::size_t m, std::size_t k) {
  std::vector<float> out = numbers(m * k, 7);
  const auto row = [&](std::size_t i) { return out.data() + i * k; };
  for (std::size_t i = 1; i < m; ++i) {
    switch (i) {
      case 1: row(i)[k / 2] = 1e30F; break;
      case 2: std::fill_n(row(i), k, 0.0F); break;
      case 3:
        for (std::size_t p = 0; p < k; ++p) row(i)[p] *= 1e-44F;  // subnormal
        break;
      case 4:
        for (std::size_t p = 0; p < k; ++p) row(i)[p] = p % 2 == 0 ? std::numeric_limits<float>::max() : -1.0F;
        break;
      case 5: row(i)[k - 1] = -100.0F; break;
      default: break;
    }
  }
  return out;
}

// One product of codes; `values` are what the weights stand for.
struct Case {
  Case(const CodesShape& s, std::vector<float> dequantized)
      : shape(s),
        values(std::move(dequantized)),
        a(activations(s.m, s.k)),
        bias(numbers(round_up(s.n, kLanes), 9)),
        residual(numbers(s.m * s.n, 8)) {}

  Product common(std::vector<float>& c) const {
    return {shape.n, shape.k, bias.data(), Activation::none, residual.data(), shape.n, c.data(), shape.n};
  }
  Range all() const { return {0, shape.m, 0, panel_count(shape.n)}; }
  // run(set, results, range, all rows as that set fixes them).
  template <class Run> void check(Run run) {
    std::vector<float> first;
    for (const Kernels* set : all_kernels()) {
      std::vector<float> together(shape.m * shape.n, -1.0F), rows(together), panels(together);
      run(*set, together, all());
      if (first.empty()) first = together;
      EXPECT_TRUE(same_bits(first, together)) << set->name << " " << shape.m << " " << shape.n << " " << shape.k;
      for (std::size_t row = 0; row < shape.m; ++row) run(*set, rows, {row, row + 1, 0, panel_count(shape.n)});
      EXPECT_TRUE(same_bits(first, rows)) << set->name << " " << shape.m << " " << shape.n << " " << shape.k;
      for (std::size_t panel = 0; panel < panel_count(shape.n); ++panel)
        run(*set, panels, {0, shape.m, panel, panel + 1});
      EXPECT_TRUE(same_bits(first, panels)) << set->name << " " << shape.m << " " << shape.n << " " << shape.k;
    }
    for (std::size_t i = 0; i < shape.m; ++i) {
      for (std::size_t j = 0; j < shape.n; ++j) {
        double sum = 0, sizes = std::fabs(double{bias[j]}) + std::fabs(double{residual[i * shape.n + j]}), maximum = 0;
        for (std::size_t p = 0; p < shape.k; ++p) {
          const double product = double{a[i * shape.k + p]} * double{values[j * shape.k + p]};
          sum += product;
          sizes += std::fabs(product);
          maximum = std::max(maximum, std::fabs(double{a[i * shape.k + p]}));
        }
        sum += double{bias[j]} + double{residual[i * shape.n + j]};
        if (std::fabs(sum) > double{std::numeric_limits<float>::max()}) continue;
        ASSERT_NEAR(double{first[i * shape.n + j]}, sum, sizes / (1 << 22) + maximum * 1e-9)
            << "row " << i << ", column " << j << " of " << shape.m << "x" << shape.n << "x" << shape.k;
      }
    }
  }

  CodesShape shape;
  std::vector<float> values, a, bias, residual;
};

// Runs product_fixed_q8 over packed codes.
struct EightBits {
  std::vector<std::int8_t> packed;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;

  void operator()(const Case& one, const Kernels& set, std::vector<float>& c, const Range& range) const {
    const std::size_t stride = fixed_q8_size(one.shape.k);
    std::vector<std::byte> digits(one.shape.m * stride);
    std::vector<float> units;
    for (std::size_t i = 0; i < one.shape.m; ++i)
      units.push_back(set.fix_row_q8(one.a.data() + i * one.shape.k, one.shape.k, digits.data() + i * stride));
    set.product_fixed_q8(
        {one.common(c), digits.data(), stride, units.data(), packed.data(), scales.data(), sums.data()}, range);
  }
};

void check_q8(const CodesShape& s) {
  const std::size_t padded = round_up(s.n, kLanes);
  std::vector<std::int8_t> codes(s.n * s.k);
  EightBits run{std::vector<std::int8_t>(packed_size(s.n, int8_depth(s.k)), 1), numbers(s.n, 5, 0.1F),
                std::vector<std::int32_t>(padded)};
  std::vector<float> values;
  const auto noise = numbers(codes.size(), 6);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(&codes[i], &noise[i], 1);
    values.push_back(static_cast<float>(codes[i]) * run.scales[i / s.k]);
  }
  run.scales.resize(padded);
  for (std::size_t first = 0; first < s.n; first += kPanel)  // in pieces, as several threads pack it
    pack_codes_i8(codes.data() + first * s.k, s.n, s.k, first, kPanel, run.packed.data(), run.sums.data());
  Case one(s, std::move(values));
  one.check([&](const Kernels& set, std::vector<float>& c, const Range& range) { run(one, set, c, range); });
}

void check_q4(const CodesShape& s) {
  std::vector<std::uint8_t> codes(s.n * s.k / 2), packed(packed_q4_size(s.n, s.k), 1);
  const std::vector<float> scales = numbers(s.n * s.k / s.block, 5, 0.1F);
  const auto noise = numbers(codes.size(), 6);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], &noise[i], 1);
  std::vector<float> values;
  for (std::size_t i = 0; i < 2 * codes.size(); ++i) {
    const int code = codes[i / 2] >> (i % 2 * 4) & 15;
    values.push_back(static_cast<float>(code < 8 ? code : code - 16) * scales[i / s.block]);
  }
  for (std::size_t first = 0; first < s.n; first += kPanel)
    pack_codes_q4(codes.data() + first * s.k / 2, scales.data() + first * (s.k / s.block), s.block, s.n, s.k, first,
                  kPanel, packed.data());
  Case one(s, std::move(values));
  std::vector<std::uint8_t> wide(q4_wide_size(s.k));
  one.check([&](const Kernels& set, std::vector<float>& c, const Range& range) {
    std::vector<std::byte> digits(s.m * fixed_q4_size(s.k));
    std::vector<float> units;
    for (std::size_t i = 0; i < s.m; ++i)
      units.push_back(set.fix_row_q4(one.a.data() + i * s.k, s.k, digits.data() + i * fixed_q4_size(s.k)));
    set.product_fixed_q4({one.common(c), digits.data(), units.data(), packed.data(), wide.data()}, range);
  });
}

void check_q8_blocks(const CodesShape& s) {
  std::vector<std::int8_t> codes(s.n * s.k);
  std::vector<std::uint8_t> packed(packed_q8_size(s.n, s.k), 1);
  const std::vector<float> scales = numbers(s.n * s.k / kBlock, 5, 0.1F);
  const auto noise = numbers(codes.size(), 6);
  std::vector<float> values;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(&codes[i], &noise[i], 1);
    if (i % 37 == 0) codes[i] = -128;
    values.push_back(static_cast<float>(codes[i]) * scales[i / kBlock]);
  }
  for (std::size_t first = 0; first < s.n; first += kPanel)
    pack_codes_q8(codes.data() + first * s.k, scales.data() + first * (s.k / kBlock), s.n, s.k, first, kPanel,
                  packed.data());
  Case one(s, std::move(values));
  one.check([&](const Kernels& set, std::vector<float>& c, const Range& range) {
    std::vector<std::byte> digits(s.m * fixed_q4_size(s.k));
    std::vector<float> units;
    for (std::size_t i = 0; i < s.m; ++i)
      units.push_back(set.fix_row_q4(one.a.data() + i * s.k, s.k, digits.data() + i * fixed_q4_size(s.k)));
    set.product_fixed_q8_blocks({one.common(c), digits.data(), units.data(), packed.data()}, range);
  });
}

TEST(FixedPoint, EightBitWeightsTimesExactActivations) {
  for (const CodesShape& shape : kCodesShapes) check_q8(shape);
  for (const CodesShape& shape : kRowShapes) check_q8(shape);
}

TEST(FixedPoint, FourBitWeightsTimesExactActivations) {
  for (const CodesShape& shape : kCodesShapes) check_q4(shape);
}

TEST(FixedPoint, EightBitWeightsInBlocksTimesExactActivations) {
  for (const CodesShape& shape : kCodesShapes) check_q8_blocks(shape);
}

// The largest digits and codes in every block, of either sign.
TEST(FixedPoint, BlocksOfTheLargestNumbersAreExact) {
  const CodesShape s{1, 16, 64, 0};
  for (const int code : {-128, 127}) {
    std::vector<std::int8_t> codes(s.n * s.k, static_cast<std::int8_t>(code));
    std::vector<std::uint8_t> packed(packed_q8_size(s.n, s.k));
    const std::vector<float> ones(s.n * s.k / kBlock, 1.0F), zeros(s.n, 0.0F);
    pack_codes_q8(codes.data(), ones.data(), s.n, s.k, 0, kPanel, packed.data());
    for (const float x : {-1.9999999F, 1.9999999F}) {
      const std::vector<float> a(s.k, x);
      for (const Kernels* set : all_kernels()) {
        std::vector<std::byte> digits(fixed_q4_size(s.k));
        const float unit = set->fix_row_q4(a.data(), s.k, digits.data());
        std::vector<float> c(s.n);
        set->product_fixed_q8_blocks({{s.n, s.k, zeros.data(), Activation::none, nullptr, s.n, c.data(), s.n},
                                      digits.data(),
                                      &unit,
                                      packed.data()},
                                     {0, 1, 0, 1});
        for (const float value : c) EXPECT_EQ(value, static_cast<float>(code) * 64 * x) << set->name;
      }
    }
  }
}

// The largest digits and codes, of as many columns as a model may have, do not overflow.
TEST(FixedPoint, TheWidestRowOfTheLargestNumbersIsExact) {
  const std::size_t k = 65536;
  const CodesShape s{1, 16, k, 0};
  std::vector<std::int8_t> codes(s.n * k, -127);
  EightBits run{std::vector<std::int8_t>(packed_size(s.n, k)), std::vector<float>(16, 1.0F),
                std::vector<std::int32_t>(16)};
  pack_codes_i8(codes.data(), s.n, k, 0, kPanel, run.packed.data(), run.sums.data());
  Case one(s, {});
  std::fill(one.a.begin(), one.a.end(), -1.9999999F);
  std::fill(one.bias.begin(), one.bias.end(), 0.0F);
  std::fill(one.residual.begin(), one.residual.end(), 0.0F);
  for (const Kernels* set : all_kernels()) {
    std::vector<float> c(16);
    run(one, *set, c, one.all());
    for (const float value : c) EXPECT_EQ(value, 127.0F * 65536 * 1.9999999F) << set->name;
  }
}

// A unit below the smallest normal number lost them.
TEST(FixedPoint, RowsOfTheSmallestNumbersAreExact) {
  const CodesShape s{2, 20, 32, 32};
  std::vector<std::int8_t> codes(s.n * s.k, 3), packed(packed_size(s.n, s.k));
  std::vector<std::uint8_t> nibbles(codes.size() / 2, 0x33), packed_nibbles(packed_q4_size(s.n, s.k));
  const std::vector<float> ones(round_up(s.n, kPanel), 1.0F), zeros(ones.size(), 0.0F);
  std::vector<std::int32_t> sums(ones.size());
  pack_codes_i8(codes.data(), s.n, s.k, 0, kPanel, packed.data(), sums.data());
  pack_codes_q4(nibbles.data(), ones.data(), 32, s.n, s.k, 0, kPanel, packed_nibbles.data());
  const float minimum = std::numeric_limits<float>::denorm_min();
  std::vector<float> a(s.m * s.k, minimum);
  for (std::size_t i = 0; i < s.k; ++i) a[s.k + i] = 12345.0F * minimum * (i % 2 == 0 ? 1.0F : -0.5F);
  const float expected[] = {3 * 32 * minimum, 3 * 16 * (12345.0F * minimum + -0.5F * 12345.0F * minimum)};
  std::vector<std::uint8_t> wide(q4_wide_size(s.k));
  for (const Kernels* set : all_kernels()) {
    std::vector<std::byte> digits(s.m * fixed_q8_size(s.k)), blocks(s.m * fixed_q4_size(s.k));
    float units[2], block_units[2];
    for (std::size_t i = 0; i < s.m; ++i) {
      units[i] = set->fix_row_q8(a.data() + i * s.k, s.k, digits.data() + i * fixed_q8_size(s.k));
      block_units[i] = set->fix_row_q4(a.data() + i * s.k, s.k, blocks.data() + i * fixed_q4_size(s.k));
    }
    std::vector<float> c(s.m * s.n), d(c);
    const Range all{0, s.m, 0, 1};
    set->product_fixed_q8({{s.n, s.k, zeros.data(), Activation::none, nullptr, s.n, c.data(), s.n},
                           digits.data(),
                           fixed_q8_size(s.k),
                           units,
                           packed.data(),
                           ones.data(),
                           sums.data()},
                          all);
    set->product_fixed_q4({{s.n, s.k, zeros.data(), Activation::none, nullptr, s.n, d.data(), s.n},
                           blocks.data(),
                           block_units,
                           packed_nibbles.data(),
                           wide.data()},
                          all);
    for (std::size_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(c[i], expected[i / s.n]) << set->name << " " << i;
      EXPECT_EQ(d[i], expected[i / s.n]) << set->name << " " << i;
    }
  }
}

TEST(FixedPoint, ARowThatIsNotFiniteGivesNoNumbers) {
  const CodesShape s{3, 20, 32, 32};
  std::vector<std::int8_t> codes(s.n * s.k, 3);
  EightBits run{std::vector<std::int8_t>(packed_size(s.n, s.k)), std::vector<float>(32, 1.0F),
                std::vector<std::int32_t>(32)};
  pack_codes_i8(codes.data(), s.n, s.k, 0, kPanel, run.packed.data(), run.sums.data());
  Case one(s, {});
  one.a[4] = std::numeric_limits<float>::infinity();
  one.a[s.k + 31] = std::numeric_limits<float>::quiet_NaN();
  for (const Kernels* set : all_kernels()) {
    std::vector<float> c(s.m * s.n);
    run(one, *set, c, one.all());
    for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(std::isnan(c[i]), i < 2 * s.n) << set->name << " " << i;
    std::vector<std::byte> blocks(fixed_q4_size(s.k));
    EXPECT_TRUE(std::isnan(set->fix_row_q4(one.a.data(), s.k, blocks.data()))) << set->name;
  }
}

}  // namespace
}  // namespace weighbridge::kernels

// SPDX-License-Identifier: Apache-2.0
// Products of f32 activations with quantized weights: every instruction set gives the bits of product_f32 on the
// dequantized weights.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "support/kernel_numbers.h"

namespace weighbridge::kernels {
namespace {

using testing::numbers, testing::same_bits;

struct Shape {
  std::size_t m, n, k, block;
};
constexpr Shape kShapes[] = {{1, 1, 32, 32},   {1, 48, 64, 32},  {1, 100, 288, 32}, {2, 17, 96, 96},  {3, 100, 288, 32},
                             {8, 144, 32, 32}, {9, 33, 128, 64}, {13, 16, 64, 32},  {17, 97, 160, 32}};
constexpr Shape kRowShapes[] = {{1, 1, 1, 0}, {1, 50, 7, 0}, {2, 33, 172, 0}, {11, 96, 65, 0}};

// One product, of the dequantized weights or of codes.
struct Case {
  Case(const Shape& s, std::vector<float> dequantized)
      : shape(s),
        values(std::move(dequantized)),
        a(numbers(s.m * s.k, 7)),
        bias(numbers(round_up(s.n, kLanes), 9)),
        residual(numbers(s.m * s.n, 8)),
        wide(kPanel * s.k) {}

  Product common(std::vector<float>& c) const {
    return {shape.n, shape.k, bias.data(), Activation::none, residual.data(), shape.n, c.data(), shape.n};
  }
  std::vector<float> expected() const {
    const Kernels& set = *all_kernels()[0];
    std::vector<float> packed(packed_size(shape.n, shape.k)), c(shape.m * shape.n, -1.0F);
    set.pack_f32(values.data(), shape.k, shape.n, shape.k, packed.data());
    set.product_f32({common(c), a.data(), shape.k, packed.data()}, all());
    return c;
  }
  Range all() const { return {0, shape.m, 0, panel_count(shape.n)}; }
  // Compares each set with expected(), for all rows together and one by one, and for panels apart.
  template <class Run> void check(Run run) {
    const auto whole = expected();
    for (const Kernels* set : all_kernels()) {
      std::vector<float> together(whole.size(), -1.0F), rows(together), panels(together);
      run(*set, together, all());
      EXPECT_TRUE(same_bits(whole, together)) << set->name << " " << shape.m << " " << shape.n << " " << shape.k;
      for (std::size_t row = 0; row < shape.m; ++row) run(*set, rows, {row, row + 1, 0, panel_count(shape.n)});
      EXPECT_TRUE(same_bits(whole, rows)) << set->name << " " << shape.m << " " << shape.n << " " << shape.k;
      for (std::size_t panel = 0; panel < panel_count(shape.n); ++panel)
        run(*set, panels, {0, shape.m, panel, panel + 1});
      EXPECT_TRUE(same_bits(whole, panels)) << set->name << " " << shape.m << " " << shape.n << " " << shape.k;
    }
  }

  Shape shape;
  std::vector<float> values, a, bias, residual, wide;
};

void check_q8(const Shape& s) {
  std::vector<std::int8_t> codes(s.n * s.k), packed(packed_size(s.n, s.k), 1);
  std::vector<float> scales = numbers(s.n, 5, 0.1F), values;
  const auto noise = numbers(codes.size(), 6);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(&codes[i], &noise[i], 1);
    values.push_back(static_cast<float>(codes[i]) * scales[i / s.k]);
  }
  scales.resize(round_up(s.n, kLanes));
  for (std::size_t first = 0; first < s.n; first += kPanel)  // in pieces, as several threads pack it
    pack_codes_q8(codes.data(), s.n, s.k, first, kPanel, packed.data());
  Case one(s, std::move(values));
  one.check([&](const Kernels& set, std::vector<float>& c, const Range& range) {
    set.product_f32_q8({one.common(c), one.a.data(), s.k, packed.data(), scales.data(), one.wide.data()}, range);
  });
}

void check_q4(const Shape& s) {
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
    pack_codes_q4(codes.data(), scales.data(), s.block, s.n, s.k, first, kPanel, packed.data());
  Case one(s, std::move(values));
  one.check([&](const Kernels& set, std::vector<float>& c, const Range& range) {
    set.product_f32_q4({one.common(c), one.a.data(), s.k, packed.data(), one.wide.data()}, range);
  });
}

TEST(ProductOfCodes, EightBitWeightsGiveTheBitsOfTheirValues) {
  for (const Shape& shape : kShapes) check_q8(shape);
  for (const Shape& shape : kRowShapes) check_q8(shape);
}

TEST(ProductOfCodes, FourBitWeightsGiveTheBitsOfTheirValues) {
  for (const Shape& shape : kShapes) check_q4(shape);
}

}  // namespace
}  // namespace weighbridge::kernels

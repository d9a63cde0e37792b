// SPDX-License-Identifier: Apache-2.0
// The kernels of language models: every instruction set gives the bits of the plain one at awkward sizes, and the plain
// one is correct.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "support/kernel_numbers.h"

namespace weighbridge::kernels {
namespace {

using testing::numbers, testing::same_bits;

// The value of a 4-bit two's complement code.
int value_of(unsigned half) { return half < 8 ? static_cast<int>(half) : static_cast<int>(half) - 16; }

struct Q4 {
  std::size_t m, n, k, block;
};
constexpr Q4 kQ4Shapes[] = {{1, 1, 32, 32},   {1, 48, 64, 32},  {2, 17, 96, 96},  {3, 100, 288, 32}, {4, 49, 64, 64},
                            {8, 144, 32, 32}, {9, 33, 128, 64}, {13, 16, 64, 32}, {17, 97, 160, 32}, {15, 80, 64, 32}};

struct Q4Case {
  explicit Q4Case(const Q4& s) : shape(s), codes(s.n * s.k / 2), scales(numbers(s.n * s.k / s.block, 5, 0.1F)) {
    const auto noise = numbers(codes.size(), 6);
    for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], &noise[i], 1);
    a = numbers(s.m * s.k, 7);
    packed.assign(packed_q4_size(s.n, s.k), 0xEE);
    for (std::size_t first = 0; first < s.n; first += 2 * kPanel)  // in pieces, as several threads pack it
      pack_codes_q4(codes.data() + first * s.k / 2, scales.data() + first * (s.k / s.block), s.block, s.n, s.k, first,
                    2 * kPanel, packed.data());
  }
  std::vector<float> product(const Kernels& set, std::size_t row_begin, std::size_t row_end) const {
    std::vector<float> residual = numbers(shape.m * shape.n, 8), c(shape.m * shape.n, -1.0F);
    const std::size_t group = q4_group(shape.m), size = q4_rows_size(shape.m, shape.k);
    std::vector<std::byte> rows(size + 64, std::byte{0x5A});
    auto* aligned = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::size_t>(rows.data()), 64));
    for (std::size_t row = 0; row < shape.m; ++row)
      set.quantize_blocks(a.data() + row * shape.k, shape.k, row, group, aligned);
    std::vector<std::uint8_t> wide(q4_wide_size(shape.k));
    const ProductQ4 task{{shape.n, shape.k, nullptr, Activation::none, residual.data(), shape.n, c.data(), shape.n},
                         aligned,
                         group,
                         packed.data(),
                         wide.data()};
    set.product_q4(task, {row_begin, row_end, 0, panel_count(shape.n)});
    return c;
  }
  Q4 shape;
  std::vector<std::uint8_t> codes;
  std::vector<float> scales, a;
  std::vector<std::uint8_t> packed;
};

TEST(Q4Product, EverySetGivesTheBitsOfThePlainOne) {
  for (const Q4& shape : kQ4Shapes) {
    const Q4Case one(shape);
    const auto plain = one.product(*all_kernels()[0], 0, shape.m);
    for (const Kernels* set : all_kernels())
      EXPECT_TRUE(same_bits(plain, one.product(*set, 0, shape.m))) << set->name << " " << shape.m << " " << shape.n;
  }
}

TEST(Q4Product, IsNearTheProductOfWhatTheCodesStandFor) {
  for (const Q4& s : kQ4Shapes) {
    const Q4Case one(s);
    const auto got = one.product(kernels(), 0, s.m);
    const auto residual = numbers(s.m * s.n, 8);
    for (std::size_t i = 0; i < s.m; ++i) {
      for (std::size_t j = 0; j < s.n; ++j) {
        double sum = residual[i * s.n + j], bound = 1e-4;
        for (std::size_t p = 0; p < s.k; ++p) {
          const std::size_t at = j * s.k + p;
          const double w = value_of(one.codes[at / 2] >> (at % 2 * 4) & 15U) *
                           static_cast<double>(one.scales[j * (s.k / s.block) + p / s.block]);
          sum += w * static_cast<double>(one.a[i * s.k + p]);
          bound += std::fabs(w) * (2.0 / 127 / 2);  // half a step of the activation codes
        }
        EXPECT_NEAR(got[i * s.n + j], sum, bound) << i << " " << j;
      }
    }
  }
}

TEST(Q4Product, ARowIsTheSameAloneAndAmongOthers) {
  const Q4Case one({13, 100, 96, 32});
  const auto together = one.product(kernels(), 0, 13);
  for (std::size_t row = 0; row < 13; ++row) {
    const auto alone = one.product(kernels(), row, row + 1);
    EXPECT_EQ(0, std::memcmp(&alone[row * 100], &together[row * 100], 100 * sizeof(float))) << row;
  }
}

// 8-bit codes in blocks, the smallest and the largest included.
struct Q8Case {
  explicit Q8Case(const Q4& s) : shape(s), codes(s.n * s.k), scales(numbers(s.n * s.k / kBlock, 5, 0.1F)) {
    const auto noise = numbers(codes.size(), 6);
    for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], &noise[i], 1);
    codes[0] = -128;
    codes[1] = 127;
    a = numbers(s.m * s.k, 7);
    packed.assign(packed_q8_size(s.n, s.k), 0xEE);
    for (std::size_t first = 0; first < s.n; first += 2 * kPanel)
      pack_codes_q8(codes.data() + first * s.k, scales.data() + first * (s.k / kBlock), s.n, s.k, first, 2 * kPanel,
                    packed.data());
  }
  std::vector<float> product(const Kernels& set, std::size_t row_begin, std::size_t row_end) const {
    std::vector<float> residual = numbers(shape.m * shape.n, 8), c(shape.m * shape.n, -1.0F);
    const std::size_t group = q4_group(shape.m);
    std::vector<std::byte> rows(q4_rows_size(shape.m, shape.k));
    for (std::size_t row = 0; row < shape.m; ++row)
      set.quantize_blocks(a.data() + row * shape.k, shape.k, row, group, rows.data());
    const Product common{shape.n, shape.k, nullptr, Activation::none, residual.data(), shape.n, c.data(), shape.n};
    set.product_q8_blocks({common, rows.data(), group, packed.data()}, {row_begin, row_end, 0, panel_count(shape.n)});
    return c;
  }
  Q4 shape;
  std::vector<std::int8_t> codes;
  std::vector<float> scales, a;
  std::vector<std::uint8_t> packed;
};

TEST(Q8BlocksProduct, EverySetGivesTheBitsOfThePlainOne) {
  for (const Q4& shape : kQ4Shapes) {
    const Q8Case one(shape);
    const auto plain = one.product(*all_kernels()[0], 0, shape.m);
    for (const Kernels* set : all_kernels())
      EXPECT_TRUE(same_bits(plain, one.product(*set, 0, shape.m))) << set->name << " " << shape.m << " " << shape.n;
  }
}

TEST(Q8BlocksProduct, IsNearTheProductOfWhatTheCodesStandFor) {
  for (const Q4& s : kQ4Shapes) {
    const Q8Case one(s);
    const auto got = one.product(kernels(), 0, s.m);
    const auto residual = numbers(s.m * s.n, 8);
    for (std::size_t i = 0; i < s.m; ++i) {
      for (std::size_t j = 0; j < s.n; ++j) {
        double sum = double{residual[i * s.n + j]}, bound = 1e-4;
        for (std::size_t p = 0; p < s.k; ++p) {
          const double w = double{one.scales[(j * s.k + p) / kBlock]} * one.codes[j * s.k + p];
          sum += w * double{one.a[i * s.k + p]};
          bound += std::fabs(w) * (2.0 / 127 / 2);  // half a step of the activation codes
        }
        EXPECT_NEAR(got[i * s.n + j], sum, bound) << i << " " << j;
      }
    }
  }
}

TEST(Q8BlocksProduct, ARowIsTheSameAloneAndAmongOthers) {
  const Q8Case one({13, 100, 96, 32});
  const auto together = one.product(kernels(), 0, 13);
  for (std::size_t row = 0; row < 13; ++row) {
    const auto alone = one.product(kernels(), row, row + 1);
    EXPECT_EQ(0, std::memcmp(&alone[row * 100], &together[row * 100], 100 * sizeof(float))) << row;
  }
}

TEST(PackHalves, PutsEachElementWhereItsFloatGoes) {
  for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{1, 1}, {50, 33}, {100, 64}, {17, 172}, {200, 96}}) {
    std::vector<std::uint16_t> halves(n * k), got(packed_size(n, k), 0xEEEE);
    std::vector<float> same(n * k), expected(got.size(), -1.0F);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i] = static_cast<std::uint16_t>(i + 1);
      same[i] = static_cast<float>(halves[i]);
    }
    kernels().pack_f32(same.data(), k, n, k, expected.data());
    for (std::size_t first = 0; first < n; first += 2 * kPanel)
      pack_halves(halves.data() + first * k, n, k, first, 2 * kPanel, got.data());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(static_cast<float>(got[i]), expected[i]) << n << " " << k;
  }
}

TEST(PackCodesI8, GivesWhatPackI8GivesOfTheSameCodes) {
  for (const auto& [n, k] : {std::pair<std::size_t, std::size_t>{1, 1}, {50, 33}, {100, 64}, {17, 172}}) {
    auto w = numbers(n * k, 9);
    std::vector<std::int8_t> codes(n * k), expected(packed_size(n, int8_depth(k)), 1), got(expected.size(), 2);
    std::vector<float> scale(round_up(n, kLanes));
    std::vector<std::int32_t> expected_sum(scale.size()), sum(scale.size());
    for (std::size_t row = 0; row < n; ++row) {
      w[row * k] = 127.0F;  // a scale of 1
      for (std::size_t p = 0; p < k; ++p) {
        w[row * k + p] = std::nearbyint(p == 0 ? 127.0F : w[row * k + p] * 60.0F);
        codes[row * k + p] = static_cast<std::int8_t>(w[row * k + p]);
      }
    }
    kernels().pack_i8(w.data(), n, k, expected.data(), scale.data(), expected_sum.data());
    for (std::size_t first = 0; first < n; first += kPanel)
      pack_codes_i8(codes.data() + first * k, n, k, first, kPanel, got.data(), sum.data());
    EXPECT_EQ(expected, got) << n << " " << k;
    EXPECT_EQ(expected_sum, sum);
  }
}

// Keys and values of one head at `length` positions, in the layout of a cache.
struct Kept {
  Kept(std::size_t length, std::size_t head)
      : k(numbers(length * head, 11)),
        v(numbers(length * head, 12)),
        keys(round_up(length, kPanel) * head, std::numeric_limits<float>::quiet_NaN()),
        values(length * head + kLanes, std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t p = 0; p < length; ++p)
      for (std::size_t d = 0; d < head; ++d) {
        keys[(p / kPanel * head + d) * kPanel + p % kPanel] = k[p * head + d];
        values[p * head + d] = v[p * head + d];
      }
  }
  std::vector<float> k, v, keys, values;
};

std::vector<float> attend(const Kernels& set, const Kept& kept, const std::vector<float>& q, std::size_t head,
                          std::size_t row, std::size_t rows, std::size_t first) {
  std::vector<float> out(q.size(), -1.0F), scratch(causal_scratch(first + row + rows) + kLanes);
  auto* aligned = reinterpret_cast<float*>(round_up(reinterpret_cast<std::size_t>(scratch.data()), 64));
  set.causal_attention({q.data() + row * head, head, rows, first + row, head, 1, 0.3F, kept.keys.data(),
                        kept.values.data(), out.data() + row * head, head, aligned});
  return out;
}

TEST(CausalAttention, IsRightAndTheSameInEverySetAndForARowAlone) {
  for (const auto& [rows, first, head] :
       {std::array<std::size_t, 3>{1, 1, 4}, {1, 49, 48}, {9, 1, 16}, {20, 90, 20}, {3, 16, 64}, {8, 41, 8}}) {
    const std::size_t length = first + rows - 1;
    const Kept kept(length, head);
    const auto q = numbers(rows * head, 13);
    const auto plain = attend(*all_kernels()[0], kept, q, head, 0, rows, first);
    for (const Kernels* set : all_kernels()) EXPECT_TRUE(same_bits(plain, attend(*set, kept, q, head, 0, rows, first)));
    for (std::size_t row = 0; row < rows; ++row) {
      const auto alone = attend(kernels(), kept, q, head, row, 1, first);
      EXPECT_EQ(0, std::memcmp(&alone[row * head], &plain[row * head], head * sizeof(float)));
      std::vector<double> weight(first + row), expected(head);
      double total = 0;
      for (std::size_t p = 0; p < weight.size(); ++p) {
        double score = 0;
        for (std::size_t d = 0; d < head; ++d) score += static_cast<double>(q[row * head + d] * kept.k[p * head + d]);
        total += weight[p] = std::exp(score * 0.3);
      }
      for (std::size_t p = 0; p < weight.size(); ++p)
        for (std::size_t d = 0; d < head; ++d)
          expected[d] += weight[p] / total * static_cast<double>(kept.v[p * head + d]);
      for (std::size_t d = 0; d < head; ++d) EXPECT_NEAR(plain[row * head + d], expected[d], 2e-6) << row << " " << d;
    }
  }
}

TEST(CausalAttention, HeadsThatReadTheSameKeysAreEachTheSameAlone) {
  const std::size_t head = 20;
  const Kept kept(120, head);
  for (const std::size_t heads : {2U, 3U, 8U, 13U}) {
    for (const std::size_t rows : {1U, 3U}) {
      const auto q = numbers(rows * heads * head, 23);
      std::vector<float> room(causal_scratch(120) + kLanes);
      auto* scratch = reinterpret_cast<float*>(round_up(reinterpret_cast<std::size_t>(room.data()), 64));
      CausalAttention task{q.data(),         heads * head,       rows,    110,          head,   heads, 0.3F,
                           kept.keys.data(), kept.values.data(), nullptr, heads * head, scratch};
      std::vector<float> expected(q.size()), together(q.size());
      for (std::size_t h = 0; h < heads; ++h) {
        CausalAttention alone = task;
        alone.heads = 1;
        alone.q += h * head;
        alone.out = expected.data() + h * head;
        all_kernels()[0]->causal_attention(alone);
      }
      task.out = together.data();
      for (const Kernels* set : all_kernels()) {
        set->causal_attention(task);
        EXPECT_TRUE(same_bits(expected, together)) << set->name << " " << heads << " " << rows;
      }
    }
  }
}

TEST(SiluProduct, IsRightAndTheSameInEverySet) {
  for (const std::size_t n : {1U, 16U, 37U}) {
    auto gate = numbers(n, 14, 100.0F);
    gate[0] = -200.0F;
    const auto up = numbers(n, 15);
    auto plain = gate;
    all_kernels()[0]->silu_product(plain.data(), up.data(), n);
    for (const Kernels* set : all_kernels()) {
      auto got = gate;
      set->silu_product(got.data(), up.data(), n);
      EXPECT_TRUE(same_bits(plain, got)) << set->name;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(gate[i]), expected = x / (1 + std::exp(-x)) * static_cast<double>(up[i]);
      EXPECT_NEAR(plain[i], expected, 1e-5 + 1e-6 * std::fabs(expected)) << x;
    }
  }
}

TEST(RmsNorm, IsRightAndTheSameInEverySet) {
  for (const std::size_t n : {1U, 16U, 37U, 288U}) {
    const auto x = numbers(n, 16), w = numbers(n, 17);
    std::vector<float> plain(n), got(n);
    all_kernels()[0]->rms_norm(x.data(), n, w.data(), 1e-5F, plain.data());
    for (const Kernels* set : all_kernels()) {
      set->rms_norm(x.data(), n, w.data(), 1e-5F, got.data());
      EXPECT_TRUE(same_bits(plain, got)) << set->name;
    }
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    const double by = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(plain[i], static_cast<double>(x[i]) * by * static_cast<double>(w[i]), 2e-6);
  }
}

TEST(Rotate, TurnsPairsAlikeInEverySet) {
  const auto x = numbers(34, 18), cosines = numbers(34, 19, 1.0F), sines = numbers(34, 22, 1.0F);
  auto plain = x;
  all_kernels()[0]->rotate(plain.data(), plain.size(), cosines.data(), sines.data());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(plain[i], x[i] * cosines[i] + x[i ^ 1] * sines[i], 1e-6) << i;
  for (const Kernels* set : all_kernels()) {
    auto got = x;
    set->rotate(got.data(), got.size(), cosines.data(), sines.data());
    EXPECT_TRUE(same_bits(plain, got)) << set->name;
  }
}

TEST(Largest, IsTheFirstOfEqualOnes) {
  for (const Kernels* set : all_kernels()) {
    for (const std::size_t n : {1U, 15U, 16U, 17U, 100U}) {
      auto x = numbers(n, 20);
      for (float& value : x) value -= 10.0F;
      x[n / 2] = -1.0F;
      x[n - 1] = -1.0F;
      EXPECT_EQ(set->largest(x.data(), n), n / 2) << set->name << " " << n;
      std::fill(x.begin(), x.end(), -std::numeric_limits<float>::infinity());
      EXPECT_EQ(set->largest(x.data(), n), 0U);
      std::fill(x.begin(), x.end(), std::numeric_limits<float>::quiet_NaN());
      EXPECT_EQ(set->largest(x.data(), n), 0U);
    }
  }
}

TEST(ExpSum, IsRightAndTheSameInEverySet) {
  for (const std::size_t n : {1U, 31U, 512U}) {
    const auto x = numbers(n, 21, 20.0F);
    const float top = x[kernels().largest(x.data(), n)], plain = all_kernels()[0]->exp_sum(x.data(), n, top);
    double expected = 0;
    for (const float value : x) expected += std::exp(static_cast<double>(value) - static_cast<double>(top));
    EXPECT_NEAR(plain, expected, 2e-6 * expected);
    for (const Kernels* set : all_kernels()) EXPECT_EQ(plain, set->exp_sum(x.data(), n, top)) << set->name;
  }
}

}  // namespace
}  // namespace weighbridge::kernels

// SPDX-License-Identifier: Apache-2.0
// Differences of pairs against plain loops, for every dtype and instruction set, in pieces of any size.
#include "codecs/pairs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "codecs/cast.h"
#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

template <class X, class Y>
PairDifferences differences(DType x, const std::vector<X>& xs, DType y, const std::vector<Y>& ys, Tolerance t = {}) {
  PairAccumulator out(x, y, t);
  out.update(std::as_bytes(std::span(xs)), std::as_bytes(std::span(ys)), xs.size());
  return out.result();
}
PairDifferences differences(const std::vector<double>& xs, const std::vector<double>& ys, Tolerance t = {}) {
  return differences(DType::f64, xs, DType::f64, ys, t);
}

TEST(Pairs, NumbersOfAFewElements) {
  const auto d = differences({1, 2, 0, -4}, {1, 2.5, 0.25, -4});
  EXPECT_EQ(d.pairs, 4u);
  EXPECT_EQ(d.changed, 2u);
  EXPECT_EQ(d.beyond, 2u);
  EXPECT_EQ(d.finite, 4u);
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_EQ(d.max_rel, 0.25);  // where x is 0 there is none
  EXPECT_EQ(d.first, 1u);
  EXPECT_EQ(d.largest, 1u);
  EXPECT_EQ(d.xx.total(), 21.0);
  EXPECT_EQ(d.dd.total(), 0.3125);
  EXPECT_EQ(d.xy.total(), 22.0);
}

TEST(Pairs, WhatIsNotFiniteIsCountedAndDoesNotPoisonTheNumbers) {
  const auto d = differences({1, kNan, kNan, kInf, kInf, -kInf, 2}, {1, kNan, 3, kInf, 4, kInf, 2.5});
  EXPECT_EQ(d.changed, 4u);
  EXPECT_EQ(d.beyond, 4u);
  EXPECT_EQ(d.nans, 1u);
  EXPECT_EQ(d.infinite, 2u);
  EXPECT_EQ(d.finite, 2u);
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_EQ(d.dd.total(), 0.25);
  EXPECT_EQ(d.first, 2u);
  EXPECT_EQ(d.largest, 6u);
  EXPECT_EQ(differences({-0.0}, {0.0}).changed, 0u);
}

TEST(Pairs, ToleranceIsThatOfNumpyAllclose) {
  const std::vector<double> x{1, 10, 100, kInf, kNan}, y{1.01, 10.2, 100.5, kInf, kNan};
  EXPECT_EQ(differences(x, y, {0.011, 0}).beyond, 2u);
  EXPECT_EQ(differences(x, y, {0, 0.01}).beyond, 1u);
  EXPECT_EQ(differences(x, y, {0.2, 0.01}).beyond, 0u);
  EXPECT_EQ(differences(x, y, {0.2, 0.01}).changed, 3u);
  EXPECT_EQ(differences({kInf}, {1.0}, {1e308, 1}).beyond, 1u);  // what is infinite is in no tolerance
}

TEST(Pairs, IntegersOf64BitsAreComparedExactly) {
  const std::int64_t big = std::int64_t{1} << 53;
  const auto d =
      differences(DType::i64, std::vector<std::int64_t>{big, -5}, DType::i64, std::vector<std::int64_t>{big + 1, -5});
  EXPECT_EQ(d.changed, 1u);
  EXPECT_EQ(d.max_abs, 1.0);
  const auto mixed = differences(DType::u64, std::vector<std::uint64_t>{~std::uint64_t{0}, 7}, DType::f64,
                                 std::vector<double>{0x1p64, 7});
  EXPECT_EQ(mixed.changed, 1u);
  EXPECT_EQ(mixed.max_abs, 1.0);
  EXPECT_EQ(differences(DType::i64, std::vector<std::int64_t>{3}, DType::f64, std::vector<double>{kNan}).nans, 1u);
  EXPECT_EQ(differences(DType::i64, std::vector<std::int64_t>{3}, DType::f64, std::vector<double>{3.5}).max_abs, 0.5);
}

TEST(Pairs, AComplexElementCountsAsTwoNumbers) {
  const std::vector<float> x{1, 2, 3, 4}, y{1, 2, 3, 5};
  PairAccumulator out(DType::complex64, DType::complex64, {});
  out.update(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)), 2);
  EXPECT_EQ(out.result().pairs, 4u);
  EXPECT_EQ(out.result().first, 3u);
  EXPECT_FALSE(can_pair(DType::complex64, DType::f32));
  EXPECT_FALSE(can_pair(DType::unknown, DType::f32));
}

TEST(Pairs, SquaresOfOneSideAreThoseOfAPairBitForBit) {
  std::mt19937 random(5);
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{16}, std::size_t{17}, std::size_t{2048}}) {
    std::vector<float> some(n);
    for (float& value : some)
      value = std::ldexp(static_cast<float>(random()) - 2e9F, static_cast<int>(random() % 60) - 60);
    const std::vector<double> wide(some.begin(), some.end());
    for (const Kernels* set : all_kernels()) {
      PairSums sums;
      set->pair_f32(some.data(), some.data(), n, {}, sums);
      EXPECT_EQ(set->squares_f32(some.data(), n), sums.xx) << set->name << " " << n;
      EXPECT_EQ(sums.xx, sums.xy);
      EXPECT_EQ(sums.dd, 0.0);
      set->pair_f64(wide.data(), wide.data(), n, {}, sums);
      EXPECT_EQ(set->squares_f64(wide.data(), n), sums.xx) << set->name << " " << n;
    }
  }
  for (const Kernels* set : all_kernels()) {
    const float odd[] = {1, std::numeric_limits<float>::quiet_NaN()};
    EXPECT_TRUE(std::isnan(set->squares_f32(odd, 2)));
  }
}

// The same numbers in another dtype take the long way.
TEST(Pairs, BlocksOfEqualBitsGiveTheSameResult) {
  std::mt19937 random(7);
  std::vector<float> x(3 * 2048 + 5);
  for (float& value : x) value = static_cast<float>(random()) / 1e9F;
  x[10] = std::numeric_limits<float>::quiet_NaN();
  x[11] = std::numeric_limits<float>::infinity();
  std::vector<float> y = x;
  y[2048 + 3] += 1;
  y[3 * 2048] = -x[3 * 2048];
  for (const std::vector<float>& other : {x, y}) {
    const auto quick = differences(DType::f32, x, DType::f32, other);
    const auto slow = differences(DType::f32, x, DType::f64, std::vector<double>(other.begin(), other.end()));
    EXPECT_EQ(quick.changed, slow.changed);
    EXPECT_EQ(quick.nans, slow.nans);
    EXPECT_EQ(quick.infinite, slow.infinite);
    EXPECT_EQ(quick.finite, slow.finite);
    EXPECT_EQ(quick.first, slow.first);
    EXPECT_EQ(quick.largest, slow.largest);
    EXPECT_EQ(quick.max_abs, slow.max_abs);
    for (const auto sum : {&PairDifferences::xx, &PairDifferences::yy, &PairDifferences::dd, &PairDifferences::xy})
      EXPECT_EQ((quick.*sum).total(), (slow.*sum).total());
  }
}

// Every dtype beside the same values in f64, by way of cast().
TEST(Pairs, EveryDtypeEqualsItsValuesInF64) {
  std::mt19937 random(3);
  for (const DTypeInfo& facts : all_dtypes()) {
    if (facts.kind == DTypeKind::complex) continue;
    const std::uint64_t n = 5000;
    std::vector<std::byte> bytes(*packed_size(facts.dtype, n));
    for (std::byte& b : bytes) b = static_cast<std::byte>(facts.kind == DTypeKind::boolean ? random() % 2 : random());
    if (facts.bits == 64)  // numbers that are finite, and integers that f64 holds
      for (std::size_t i = 6; i < bytes.size(); i += 8) {
        bytes[i] &= std::byte{0x0f};
        bytes[i + 1] &= facts.kind == DTypeKind::real ? std::byte{0x3f} : std::byte{0};
      }
    std::vector<double> values(n);
    const bool casts = cast(facts.dtype, bytes, DType::f64, std::as_writable_bytes(std::span(values)), n).ok();
    if (facts.dtype == DType::f8_e8m0 && !casts) continue;
    ASSERT_TRUE(casts) << facts.name;
    PairAccumulator out(facts.dtype, DType::f64, {});
    out.update(bytes, std::as_bytes(std::span(values)), n);
    EXPECT_EQ(out.result().changed, 0u) << facts.name;
    EXPECT_EQ(out.result().pairs, n);
    PairAccumulator same(facts.dtype, facts.dtype, {});
    same.equal(bytes, n);
    EXPECT_EQ(same.result().changed, 0u) << facts.name;
    EXPECT_EQ(same.result().finite, out.result().finite) << facts.name;
  }
}

template <class Real> void plain(const Real* x, const Real* y, std::size_t n, double atol, double rtol, PairSums& out) {
  double xx[16] = {}, yy[16] = {}, dd[16] = {}, xy[16] = {};
  out = {};
  for (std::size_t i = 0; i < n; ++i) {
    const auto u = static_cast<double>(x[i]), v = static_cast<double>(y[i]), d = v - u;
    xx[i % 16] += u * u;
    yy[i % 16] += v * v;
    dd[i % 16] += d * d;
    xy[i % 16] += u * v;
    out.max_abs = std::max(out.max_abs, std::abs(d));
    if (u != 0) out.max_rel = std::max(out.max_rel, std::abs(d) / std::abs(u));
    out.changed += u != v ? 1U : 0U;
    out.beyond += std::abs(d) > atol + rtol * std::abs(v) ? 1U : 0U;
  }
  for (std::size_t i = 0; i < 16; ++i) out.xx += xx[i], out.yy += yy[i], out.dd += dd[i], out.xy += xy[i];
}

template <class Real, class Kernel> void check(Kernel kernel, const char* name) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (std::size_t n = 0; n < 70; ++n)
    for (const double rtol : {0.0, 0.5}) {
      std::vector<Real> x(n), y(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = static_cast<Real>(random() % 5 == 0 ? 0 : normal(random));
        y[i] = random() % 3 == 0 ? x[i] : static_cast<Real>(static_cast<double>(x[i]) + 0.3 * normal(random));
      }
      PairSums fast, slow;
      kernel(x.data(), y.data(), n, {0.01 * rtol, rtol}, fast);
      plain(x.data(), y.data(), n, 0.01 * rtol, rtol, slow);
      EXPECT_EQ(fast.xx, slow.xx) << name << n;
      EXPECT_EQ(fast.yy, slow.yy);
      EXPECT_EQ(fast.dd, slow.dd);
      EXPECT_EQ(fast.xy, slow.xy);
      EXPECT_EQ(fast.max_abs, slow.max_abs);
      EXPECT_NEAR(fast.max_rel, slow.max_rel, 1e-15 * slow.max_rel);  // the products may choose a neighbor
      EXPECT_EQ(fast.changed, slow.changed);
      EXPECT_EQ(fast.beyond, slow.beyond);
    }
}

TEST(Pairs, EveryInstructionSetGivesTheBitsOfAPlainLoop) {
  for (const Kernels* set : all_kernels()) {
    check<float>(set->pair_f32, set->name);
    check<double>(set->pair_f64, set->name);
  }
}

// bf16 as it is stored: its words give the elements of even places and those of odd ones; other types are in order.
PairSums plain_narrow(const std::vector<float>& x, const std::vector<float>& y, bool words) {
  PairSums out{};
  float xs[16] = {}, ys[16] = {}, ds[16] = {};
  double xx[16] = {}, yy[16] = {}, dd[16] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t lane = words ? i % 32 / 2 : i % 16;
    const float u = x[i], v = y[i], d = v - u;
    xs[lane] += u * u;
    ys[lane] += v * v;
    ds[lane] += d * d;
    out.max_abs = std::max(out.max_abs, static_cast<double>(std::abs(d)));
    const double exact = static_cast<double>(v) - static_cast<double>(u);
    if (u != 0) out.max_rel = std::max(out.max_rel, std::abs(exact) / std::abs(static_cast<double>(u)));
    out.changed += u != v ? 1U : 0U;
    if (i % 256 != 255 && i + 1 < x.size()) continue;
    for (std::size_t j = 0; j < 16; ++j) {
      xx[j] += static_cast<double>(xs[j]);
      yy[j] += static_cast<double>(ys[j]);
      dd[j] += static_cast<double>(ds[j]);
      xs[j] = ys[j] = ds[j] = 0;
    }
  }
  for (std::size_t j = 0; j < 16; ++j) out.xx += xx[j], out.yy += yy[j], out.dd += dd[j];
  return out;
}

TEST(Pairs, NarrowTypesGiveTheBitsOfAPlainLoopInEveryInstructionSet) {
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  for (const std::size_t n : {1U, 2U, 31U, 32U, 33U, 255U, 256U, 257U, 511U, 1000U, 2048U}) {
    std::vector<float> x(n), y(n);
    std::vector<std::uint16_t> x_words(n), y_words(n);
    const auto word = [](float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); };
    for (std::size_t i = 0; i < n; ++i) {
      x_words[i] = word(random() % 9 == 0 ? 0 : std::ldexp(normal(random), static_cast<int>(random() % 12)));
      x[i] = std::bit_cast<float>(std::uint32_t{x_words[i]} << 16);
      y_words[i] = word(random() % 3 == 0 ? x[i] : x[i] * (1 + 0.3F * normal(random)));
      y[i] = std::bit_cast<float>(std::uint32_t{y_words[i]} << 16);
    }
    const double ratio = plain_narrow(x, y, false).max_rel;
    for (const Kernels* set : all_kernels())
      for (const bool words : {false, true})
        for (const double before : {0.0, 0.9995 * ratio, 2 * ratio}) {
          PairSums fast;
          if (words)
            set->pair_bf16(std::as_bytes(std::span(x_words)).data(), std::as_bytes(std::span(y_words)).data(), n,
                           before, fast);
          else
            set->pair_narrow(x.data(), y.data(), n, before, fast);
          const PairSums slow = plain_narrow(x, y, words);
          EXPECT_EQ(fast.xx, slow.xx) << set->name << n;
          EXPECT_EQ(fast.yy, slow.yy);
          EXPECT_EQ(fast.dd, slow.dd);
          EXPECT_EQ(fast.max_abs, slow.max_abs);
          EXPECT_EQ(fast.changed, slow.changed);
          if (before < ratio || ratio == 0) {
            EXPECT_EQ(fast.max_rel, slow.max_rel);
          } else {
            EXPECT_LE(fast.max_rel, before);
          }
        }
  }
}

// Whatever f32 cannot hold is added in f64, and nothing is lost.
TEST(Pairs, NarrowTypesOfAnySizeEqualTheirValuesInF64) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  for (const int exponent : {-120, -70, -45, -10, 0, 40, 70, 120})
    for (const float factor : {1.01F, 1000.0F, 0.0F}) {
      std::vector<std::uint16_t> x(5000), y(x.size());
      std::vector<double> x_wide(x.size()), y_wide(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float one = std::ldexp(normal(random), exponent), other = exponent < 110 ? one * factor : -one;
        x[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(one) >> 16);
        y[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(other) >> 16);
        x_wide[i] = static_cast<double>(std::bit_cast<float>(std::uint32_t{x[i]} << 16));
        y_wide[i] = static_cast<double>(std::bit_cast<float>(std::uint32_t{y[i]} << 16));
      }
      const auto narrow = differences(DType::bf16, x, DType::bf16, y), wide = differences(x_wide, y_wide);
      EXPECT_EQ(narrow.changed, wide.changed) << exponent << " " << factor;
      EXPECT_EQ(narrow.finite, wide.finite);
      EXPECT_EQ(narrow.first, wide.first);
      EXPECT_EQ(narrow.max_rel, wide.max_rel);
      EXPECT_NEAR(narrow.max_abs, wide.max_abs, wide.max_abs * 0x1p-24);
      for (const auto sum : {&PairDifferences::xx, &PairDifferences::yy, &PairDifferences::dd})
        EXPECT_NEAR((narrow.*sum).total(), (wide.*sum).total(), (wide.*sum).total() * 18 * 0x1p-24);
    }
}

TEST(Pairs, PartsAddUpToTheWhole) {
  std::mt19937 random(11);
  std::vector<float> x(40'000), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(random() % 1000);
    y[i] = i < 20'000 ? x[i] : x[i] + static_cast<float>(random() % 3);
  }
  const auto whole = differences(DType::f32, x, DType::f32, y);
  PairAccumulator head(DType::f32, DType::f32, {}), tail(DType::f32, DType::f32, {}, 20'480);
  const auto xs = std::as_bytes(std::span(x)), ys = std::as_bytes(std::span(y));
  head.update(xs.first(4 * 20'480), ys.first(4 * 20'480), 20'480);
  tail.update(xs.subspan(4 * 20'480), ys.subspan(4 * 20'480), x.size() - 20'480);
  PairDifferences both = head.result();
  both.add(tail.result());
  EXPECT_EQ(both.changed, whole.changed);
  EXPECT_EQ(both.first, whole.first);
  EXPECT_EQ(both.largest, whole.largest);
  EXPECT_EQ(both.dd.total(), whole.dd.total());
  EXPECT_EQ(both.xx.total(), whole.xx.total());
}

TEST(Pairs, SquaresThatOverflowAreSaidToBeInfinite) {
  const auto d = differences({1e200, 1}, {-1e200, 1});
  EXPECT_EQ(d.changed, 1u);
  EXPECT_EQ(d.finite, 2u);
  EXPECT_EQ(d.max_abs, 2e200);
  EXPECT_EQ(d.dd.total(), kInf);
}

}  // namespace
}  // namespace weighbridge::codecs

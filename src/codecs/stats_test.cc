// SPDX-License-Identifier: Apache-2.0
// Statistics against plain sums, in pieces of any size, for every dtype.
#include "codecs/stats.h"

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

template <class T>
Statistics stats(DType dtype, const std::vector<T>& values, std::size_t step = 1 << 20,
                 std::uint64_t elements = ~std::uint64_t{0}) {
  StatsAccumulator accumulator(dtype, elements);
  auto left = std::as_bytes(std::span(values));
  while (!left.empty()) {
    const auto piece = left.first(std::min(step, left.size()));
    accumulator.update(piece);
    left = left.subspan(piece.size());
  }
  return accumulator.finish();
}

TEST(Stats, CountsWhatIsNotFiniteAndLeavesItOut) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto s = stats(DType::f32, std::vector<float>{1, -2, 0, -0.0f, inf, -inf, nan, 5});
  EXPECT_EQ(s.elements, 8u);
  EXPECT_EQ(s.finite, 5u);
  EXPECT_EQ(s.nan, 1u);
  EXPECT_EQ(s.infinite, 2u);
  EXPECT_EQ(s.zero, 2u);
  EXPECT_EQ(std::get<double>(s.min), -2.0);
  EXPECT_EQ(std::get<double>(s.max), 5.0);
  EXPECT_EQ(s.mean, 0.8);
  const auto none = stats(DType::f32, std::vector<float>{nan, inf});
  EXPECT_EQ(none.finite, 0u);
  EXPECT_EQ(none.mean, 0.0);
  EXPECT_EQ(stats(DType::f32, std::vector<float>{}).elements, 0u);
}

TEST(Stats, DoesNotDependOnSlicing) {
  std::mt19937 random(9);
  std::vector<float> values(30'011);
  for (float& v : values) v = static_cast<float>(random()) / 1e6f - 2000;
  const auto whole = stats(DType::f32, values);
  double low = 1e9, high = -1e9;
  long double sum = 0;
  for (const float v : values) {
    low = std::min(low, static_cast<double>(v));
    high = std::max(high, static_cast<double>(v));
    sum += static_cast<long double>(v);
  }
  EXPECT_EQ(std::get<double>(whole.min), low);
  EXPECT_EQ(std::get<double>(whole.max), high);
  EXPECT_NEAR(whole.mean, static_cast<double>(sum / 30'011), 1e-12);
  for (const std::size_t step : {1u, 3u, 4096u, 8191u}) {
    const auto sliced = stats(DType::f32, values, step);
    EXPECT_EQ(sliced.elements, values.size());
    EXPECT_EQ(sliced.min, whole.min);
    EXPECT_EQ(sliced.max, whole.max);
    EXPECT_NEAR(sliced.mean, whole.mean, 1e-12);
  }
}

TEST(Stats, SumsOfDoublesAreCompensated) {
  std::vector<double> values;
  for (int i = 0; i < 5000; ++i) values.insert(values.end(), {1e16, 1.0, -1e16});
  EXPECT_EQ(stats(DType::f64, values).mean, 5000.0 / 15'000.0);
}

TEST(Stats, NumbersWhoseSumOverflowsHaveAMean) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  EXPECT_EQ(stats(DType::f64, std::vector<double>(4, 1.7e308)).mean, 1.7e308);
  EXPECT_EQ(stats(DType::f64, std::vector<double>(7, kLargest)).mean, kLargest);
  EXPECT_EQ(stats(DType::f64, std::vector<double>{kLargest, kLargest, -kLargest, -kLargest}).mean, 0);
  EXPECT_EQ(stats(DType::complex128, std::vector<double>{-kLargest, -kLargest, 0, 0}).mean, -kLargest / 2);
  // Blocks that have no such numbers count too, and so do those with others that are not finite.
  std::vector<double> mixed(10'000, 1e280);
  mixed[5000] = mixed[5001] = 1.5e308;
  mixed[5002] = std::numeric_limits<double>::infinity();
  const auto s = stats(DType::f64, mixed, 1001);
  EXPECT_EQ(s.finite, 9999u);
  EXPECT_DOUBLE_EQ(s.mean, 1.5e308 / 9999 * 2);
}

TEST(Stats, IntegersAreExact) {
  const auto u = stats(DType::u64, std::vector<std::uint64_t>{~std::uint64_t{0}, 0, ~std::uint64_t{0}});
  EXPECT_EQ(std::get<std::uint64_t>(u.min), 0u);
  EXPECT_EQ(std::get<std::uint64_t>(u.max), ~std::uint64_t{0});
  EXPECT_EQ(u.mean, 2.0 / 3.0 * 18446744073709551616.0);
  EXPECT_EQ(u.zero, 1u);
  const auto i = stats(DType::i8, std::vector<std::int8_t>{-128, 127, 0}, 2);
  EXPECT_EQ(std::get<std::int64_t>(i.min), -128);
  EXPECT_EQ(std::get<std::int64_t>(i.max), 127);
  EXPECT_EQ(i.mean, -1.0 / 3.0);
  const std::vector<std::int64_t> extremes(4000, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(stats(DType::i64, extremes).mean, 9223372036854775807.0);
  EXPECT_EQ(stats(DType::boolean, std::vector<std::uint8_t>{0, 2, 255, 1}).mean, 0.75);
}

TEST(Stats, PackedTypesCountElementsAndNotSpareBits) {
  const std::vector<float> values{1, -2, 0.5f, 3, 1.5f};
  for (const DType dtype : {DType::f4, DType::f6_e2m3, DType::f6_e3m2}) {
    std::vector<std::byte> packed(static_cast<std::size_t>(*packed_size(dtype, values.size())));
    ASSERT_TRUE(cast(DType::f32, std::as_bytes(std::span(values)), dtype, packed, values.size()).ok());
    for (const std::size_t step : {1u, 2u, 100u}) {
      const auto s = stats(dtype, packed, step, values.size());
      EXPECT_EQ(s.elements, 5u) << name(dtype) << step;
      EXPECT_EQ(s.zero, 0u);
      EXPECT_EQ(std::get<double>(s.max), 3.0);
      EXPECT_EQ(s.mean, 0.8);
    }
  }
}

TEST(Stats, IntegersBelowAByteCountElementsAndNotSpareBits) {
  const std::vector<std::uint8_t> packed{0x8F, 0xF7};
  for (const std::size_t step : {1u, 100u}) {
    const auto four = stats(DType::i4, packed, step, 3);
    EXPECT_EQ(four.elements, 3u);
    EXPECT_EQ(std::get<std::int64_t>(four.min), -8);
    EXPECT_EQ(std::get<std::int64_t>(four.max), 7);
    const auto two = stats(DType::u2, packed, step, 6);
    EXPECT_EQ(two.elements, 6u);
    EXPECT_EQ(two.zero, 1u);
    EXPECT_EQ(std::get<std::uint64_t>(two.max), 3u);
  }
}

TEST(Stats, ComplexCountsItsParts) {
  const auto s = stats(DType::complex64, std::vector<float>{1, -3, 0, 6});
  EXPECT_EQ(s.elements, 4u);
  EXPECT_EQ(std::get<double>(s.min), -3.0);
  EXPECT_EQ(s.mean, 1.0);
}

TEST(Kernels, SumsAreTheSameBitsFromEverySet) {
  std::mt19937_64 random(17);
  for (const std::size_t n : {1u, 15u, 16u, 17u, 2048u, 2047u}) {
    std::vector<float> f32(n);
    std::vector<double> f64(n);
    for (float& v : f32) v = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (double& v : f64)
      v = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), static_cast<int>(random() % 200) - 100);
    f64[n / 2] = std::numeric_limits<double>::quiet_NaN();
    RealSums a{}, b{};
    for (const Kernels* set : all_kernels()) {
      all_kernels()[0]->sum_f32(f32.data(), n, a);
      set->sum_f32(f32.data(), n, b);
      EXPECT_TRUE(a.min == b.min && a.max == b.max && a.sum == b.sum && a.nan == b.nan && a.zero == b.zero &&
                  a.finite == b.finite)
          << set->name << n;
      all_kernels()[0]->sum_f64(f64.data(), n, a);
      set->sum_f64(f64.data(), n, b);
      EXPECT_TRUE(a.min == b.min && a.max == b.max && a.sum == b.sum && a.rest == b.rest && a.nan == b.nan)
          << set->name << n;
    }
  }
}

}  // namespace
}  // namespace weighbridge::codecs

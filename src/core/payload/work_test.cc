// SPDX-License-Identifier: Apache-2.0
// The work of making elements: repeated and strided ones, and those that a sparse tensor does not store.
#include "core/payload/work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/model/draft.h"
#include "support/thrown.h"

namespace weighbridge {
namespace {

using test::thrown;

constexpr std::uint64_t kMany = std::uint64_t{1} << 36;

std::shared_ptr<const Source> bytes_of(std::size_t size) {
  auto kept = std::make_shared<std::vector<std::uint8_t>>(size);
  std::iota(kept->begin(), kept->end(), std::uint8_t{0});
  return memory_source({std::as_bytes(std::span(*kept)), kept}, "elements");
}

// A tensor of bytes with these strides, over a file of `size` bytes.
Model strided(std::vector<std::uint64_t> shape, std::vector<std::int64_t> strides, std::size_t size) {
  core::Draft draft;
  draft.add_source(bytes_of(size));
  draft.add_tensor("w", Layout::dense, DType::u8, shape);
  const std::uint64_t count = std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  const std::uint32_t part = draft.add_part("data", DType::u8, shape, Encoding::raw, {0, 0, size}, count);
  draft.part(part).strides(std::move(strides));
  draft.index_names();
  return draft.finish();
}

std::vector<std::uint8_t> streamed(const Part& part) {
  std::vector<std::uint8_t> out;
  part.stream({}, [&](std::span<const std::byte> piece) {
    for (const std::byte b : piece) out.push_back(std::to_integer<std::uint8_t>(b));
    return true;
  });
  return out;
}

constexpr auto kIgnore = [](std::span<const std::byte>) { return true; };

// A file of 1.5 KiB gave 256 GiB.
TEST(Work, OneElementRepeatedWithoutEndIsRefusedWhereverItIsMade) {
  const Model model = strided({kMany}, {0}, 1);
  const Tensor w = model["w"];
  const Part part = w.main();
  EXPECT_EQ(thrown([&] { part.stream({}, kIgnore); }).rule, "limit/work");
  EXPECT_EQ(thrown([&] { w.stream_dense(DType::u8, {}, kIgnore); }).rule, "limit/work");
  EXPECT_EQ(thrown([&] { w.stream_dense(DType::f16, {}, kIgnore); }).rule, "limit/work");
  const Limits roomy{.decoded = UINT64_MAX};
  EXPECT_EQ(thrown([&] { static_cast<void>(w.to_dense({.limits = roomy})); }).rule, "limit/work");
  const Finding exceeded = thrown([&] { part.stream({}, kIgnore); });
  EXPECT_EQ(exceeded.kind, Kind::limit);
  EXPECT_EQ(exceeded.hint.what, Hint::What::limit);
  EXPECT_EQ(exceeded.hint.name, "work");
  EXPECT_EQ(exceeded.hint.value, std::to_string(kMany));
}

TEST(Work, AFewOfThemAreRead) {
  const Model model = strided({kMany, 2}, {0, 1}, 2);
  std::vector<std::byte> out(4);
  for (const std::uint64_t first : {std::uint64_t{0}, kMany, 2 * kMany - 4}) {
    model["w"].main().read_range(first, 4, out);
    EXPECT_EQ(out, (std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{0}, std::byte{1}}));
  }
  // A row without end before the elements costs nothing.
  const Model wide = strided({2, kMany}, {1, 0}, 2);
  wide["w"].main().read_range(kMany - 2, 4, out);
  EXPECT_EQ(out, (std::vector<std::byte>{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{1}}));
}

TEST(Work, EitherLimitAllowsIt) {
  const std::uint64_t size = (std::uint64_t{256} << 20) + 1;
  const Model model = strided({size}, {0}, 1);
  const auto count = [&](const Limits& limits) {
    std::uint64_t done = 0;
    model["w"].main().stream({.limits = limits}, [&](std::span<const std::byte> piece) {
      done += piece.size();
      return done < 8 << 20;
    });
    return done;
  };
  EXPECT_EQ(thrown([&] { count({}); }).rule, "limit/work");
  EXPECT_EQ(thrown([&] { count({.work = size - 1}); }).rule, "limit/work");
  EXPECT_GT(count({.work = size}), 0U);
  EXPECT_GT(count({.output = size}), 0U);
  EXPECT_GT(count({.work = 1, .output = size}), 0U);
  // A limit of outputs does not lower that of work.
  const Model plain = strided({4}, {1}, 4);
  EXPECT_EQ(streamed(plain["w"].main()).size(), 4U);
  plain["w"].main().stream({.limits = {.output = 1}}, kIgnore);
}

TEST(Work, SixteenTimesTheDataAndAtLeast256MiBAreAllowed) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  for (const auto& [data, made] : {std::pair{1 * kMiB, 256 * kMiB}, std::pair{20 * kMiB, 320 * kMiB}}) {
    const Model model = strided({made / data, data}, {0, 1}, data),
                more = strided({made / data + 1, data}, {0, 1}, data);
    std::uint64_t done = 0;
    model["w"].main().stream({}, [&](std::span<const std::byte> piece) {
      done += piece.size();
      return false;
    });
    EXPECT_GT(done, 0U);
    EXPECT_EQ(thrown([&] { more["w"].main().stream({}, kIgnore); }).rule, "limit/work");
  }
}

TEST(Limits, OfADecodedTensorAreBytesOf64GiB) {
  constexpr std::uint64_t kDecodedLimit = std::uint64_t{64} << 30;
  EXPECT_EQ(Limits{}.decoded, kDecodedLimit);
  Builder builder;
  const auto kept = std::make_shared<const std::vector<std::uint64_t>>(2, 0);
  const Bytes zeros{std::as_bytes(std::span(*kept)), kept};
  builder.object("s", Layout::sparse_coo, {kDecodedLimit / 4 + 1}, {},
                 {{"values", DType::f32, {1}, {zeros.span.first(4), kept}},
                  {"coords", DType::u64, {1}, {zeros.span.first(8), kept}}});
  const Model model = builder.build();
  const Limits roomy{.work = UINT64_MAX, .output = UINT64_MAX};
  EXPECT_EQ(thrown([&] { static_cast<void>(model["s"].to_dense({.limits = roomy})); }).rule, "limit/decoded");
}

TEST(Work, TheZerosOfASparseTensorCount) {
  const std::uint64_t wide = std::uint64_t{1} << 30;
  Builder builder;
  const auto kept = std::make_shared<const std::vector<std::uint64_t>>(2, 0);
  const Bytes zeros{std::as_bytes(std::span(*kept)), kept};
  builder.object("s", Layout::sparse_coo, {wide}, {},
                 {{"values", DType::f32, {1}, {zeros.span.first(4), kept}},
                  {"coords", DType::u64, {1}, {zeros.span.first(8), kept}}});
  const Model model = builder.build();
  const Tensor s = model["s"];
  EXPECT_EQ(thrown([&] { static_cast<void>(s.to_dense()); }).rule, "limit/work");
  EXPECT_EQ(thrown([&] { s.stream_dense(DType::f32, {}, kIgnore); }).rule, "limit/work");
  std::vector<std::byte> out(4);
  EXPECT_EQ(thrown([&] { s.rows_into(5, 1, DType::f32, out); }).rule, "limit/work");
}

// Elements that are far apart are read one by one, which takes longer than their bytes say.
TEST(Work, FarApartElementsCostMoreThanTheirBytes) {
  const std::uint64_t side = std::uint64_t{1} << 12;
  const Model model = strided({side, side}, {5000, 5000}, 2 * 5000 * side);
  core::Work work;
  work.add(model["w"].main());
  EXPECT_TRUE(work.excess({.work = 511 * side * side}));
  EXPECT_FALSE(work.excess({.work = 512 * side * side}));
}

TEST(Work, RangesOfAnyStridesAreThoseOfTheStream) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint64_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> shape(1 + below(4));
    std::vector<std::int64_t> strides;
    std::int64_t low = 0, high = 0;
    for (std::uint64_t& size : shape) {
      size = 1 + below(6);
      const auto stride = static_cast<std::int64_t>(below(9)) - 4;
      strides.push_back(stride * (below(8) == 0 ? 1000 : 1));
      (strides.back() < 0 ? low : high) += strides.back() * static_cast<std::int64_t>(size - 1);
    }
    const Model model = strided(shape, strides, static_cast<std::size_t>(high - low + 1));
    const Part part = model["w"].main();
    const std::vector<std::uint8_t> all = streamed(part);
    // The definition, element by element.
    for (std::uint64_t i = 0; i < part.count(); ++i) {
      std::int64_t at = -low;
      std::uint64_t rest = i;
      for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
        at += static_cast<std::int64_t>(rest % shape[d]) * strides[d];
      ASSERT_EQ(all[i], static_cast<std::uint8_t>(at));
    }
    const std::uint64_t first = below(part.count()), count = below(part.count() - first + 1);
    std::vector<std::byte> some(count);
    part.read_range(first, count, some);
    ASSERT_TRUE(std::ranges::equal(some, std::as_bytes(std::span(all).subspan(first, count))));
  }
}

}  // namespace
}  // namespace weighbridge

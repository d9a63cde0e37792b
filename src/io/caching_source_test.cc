// SPDX-License-Identifier: Apache-2.0
// cached(): the bytes of the source, with few requests. What opening each format costs: requests_test.cc of convert.
#include "io/caching_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "io/read.h"
#include "support/failing_source.h"
#include "support/far_source.h"
#include "support/random.h"
#include "support/thrown.h"

namespace weighbridge {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

std::shared_ptr<const test::FarSource> far(const std::vector<std::byte>& bytes, std::uint64_t gap = kMiB) {
  return std::make_shared<test::FarSource>(memory_source({bytes, nullptr}), gap);
}

std::vector<std::byte> some(const Source& source, std::uint64_t offset, std::size_t n) {
  std::vector<std::byte> out(n);
  source.read_at(offset, out);
  return out;
}

TEST(CachedSource, GivesTheBytesOfTheSource) {
  const std::vector<std::byte> bytes = test::noise(700'000);
  test::Random random(3);
  for (const std::uint64_t gap : {std::uint64_t{1}, std::uint64_t{100}, 4 * kKiB, kMiB, UINT64_MAX}) {
    const auto source = io::cached(far(bytes, gap));
    for (int folder_lock = 0; folder_lock < 300; ++folder_lock) {
      std::vector<std::vector<std::byte>> out(1 + test::pick(random, 5));
      std::vector<ReadRange> ranges;
      for (auto& each : out) {
        each.resize(test::pick(random, folder_lock % 7 == 0 ? 200'000 : 300));
        ranges.push_back({test::pick(random, bytes.size() - each.size() + 1), each});
      }
      source->read(ranges);
      for (const ReadRange& range : ranges)
        ASSERT_TRUE(std::ranges::equal(range.out, std::span(bytes).subspan(range.offset, range.out.size()))) << gap;
    }
  }
}

TEST(CachedSource, AHeaderReadInSmallPiecesTakesFewRequests) {
  const std::vector<std::byte> bytes = test::noise(24 * kMiB);
  const auto from = far(bytes);
  const auto source = io::cached(from);
  for (std::uint64_t at = 0; at < 10 * kMiB; at += 1000) some(*source, at, 1000);
  EXPECT_LE(from->requests, 6U);
  EXPECT_LE(from->bytes, 14 * kMiB);
}

TEST(CachedSource, TheFirstReadOfALargeFileIsAsLongAsTheGapAndOfASmallOneALittle) {
  const std::vector<std::byte> small = test::noise(8 * kMiB), large(160 * kMiB);
  for (const auto& [bytes, maximum] : {std::pair(&small, 64 * kKiB), std::pair(&large, kMiB)}) {
    const auto from = far(*bytes);
    const auto source = io::cached(from);
    EXPECT_EQ(some(*source, 0, 8).size(), 8U);
    EXPECT_EQ(from->bytes, maximum);
  }
}

TEST(CachedSource, TheEndIsReadBackward) {
  const std::vector<std::byte> bytes = test::noise(8 * kMiB);
  const auto from = far(bytes);
  const auto source = io::cached(from);
  some(*source, bytes.size() - 64, 64);
  EXPECT_EQ(some(*source, bytes.size() - 60'000, 100), std::vector(bytes.end() - 60'000, bytes.end() - 59'900));
  EXPECT_EQ(from->requests, 1U);
}

TEST(CachedSource, RangesThatAreLessThanTheGapApartAreOneRequest) {
  const std::vector<std::byte> bytes = test::noise(40 * kMiB);
  const auto from = far(bytes);
  const auto source = io::cached(from);
  std::byte out[6][100];
  const std::uint64_t at[] = {9 * kMiB, 1 * kMiB, 1 * kMiB + 500 * kKiB, 2 * kMiB, 30 * kMiB, 9 * kMiB + 4000};
  std::vector<ReadRange> ranges;
  for (std::size_t i = 0; i < 6; ++i) ranges.push_back({at[i], out[i]});
  source->read(ranges);
  EXPECT_EQ(from->requests, 3U);
  EXPECT_EQ(from->calls, 1U);
  for (std::size_t i = 0; i < 6; ++i) some(*source, at[i] + 200, 1000);
  EXPECT_EQ(from->requests, 3U) << "what follows each range is there too";
}

// Kept bytes are bounded: a source may say any gap, and a reader may read all of a file.
TEST(CachedSource, KeepsAFewPiecesOnly) {
  const std::vector<std::byte> bytes(100 * kMiB);
  const auto from = far(bytes, UINT64_MAX);
  const auto source = io::cached(from);
  for (std::uint64_t at = 0; at < bytes.size(); at += 64 * kKiB) some(*source, at, 64 * kKiB);
  const std::uint64_t before = from->requests;
  some(*source, bytes.size() - 100, 100);
  EXPECT_EQ(from->requests, before);
  some(*source, 0, 100);
  EXPECT_EQ(from->requests, before + 1) << "the first bytes have made room";
  EXPECT_LE(before, 16U);
}

TEST(CachedSource, AnErrorOfTheSourceIsPassedOnAndNothingOfItIsKept) {
  const std::vector<std::byte> bytes = test::noise(kMiB);
  const auto failing = std::make_shared<test::FailingSource>(memory_source({bytes, nullptr}), 600'000);
  const auto source = io::cached(std::make_shared<test::FarSource>(failing));
  EXPECT_EQ(some(*source, 0, 100), std::vector(bytes.begin(), bytes.begin() + 100));
  for (int folder_lock = 0; folder_lock < 2; ++folder_lock)
    EXPECT_EQ(test::thrown([&] { some(*source, 600'000, 1); }).kind, Kind::io);
}

TEST(CachedSource, IsOnlyOverSourcesWhoseRangesCostARoundTrip) {
  const std::vector<std::byte> bytes = test::noise(100);
  const auto near = memory_source({bytes, nullptr});
  EXPECT_EQ(io::cached(near), near);
  EXPECT_EQ(io::cached(std::shared_ptr<const Source>()), nullptr);
  EXPECT_EQ(io::piece_of(*near, 10), 10U);
  const auto from = far(bytes);
  const auto cached = io::cached(from);
  EXPECT_NE(cached, from);
  EXPECT_EQ(io::cached(cached), cached);
  for (const Source* each : {cached.get(), static_cast<const Source*>(from.get())}) {
    EXPECT_GE(io::piece_of(*each, 10), kMiB);
    EXPECT_EQ(io::piece_of(*each, 10) % 12, 0U) << "whole elements";
  }
  EXPECT_LE(io::piece_of(*far(bytes, UINT64_MAX), 10), 4 * kMiB);
}

TEST(StoredBytes, AreTheRangeInOrderWhateverTheRoom) {
  const std::vector<std::byte> bytes = test::noise(300'000);
  const auto range = std::span(bytes).subspan(1000, 290'000);
  test::Random random(5);
  for (const std::uint64_t gap : {std::uint64_t{0}, std::uint64_t{100}, 64 * kKiB, kMiB}) {
    const auto from = far(bytes, gap);
    io::StoredBytes stored(*from, 1000, range.size());
    std::vector<std::byte> got, room(range.size());
    std::size_t turns = 0;
    for (;; ++turns) {
      const std::size_t n = stored(std::span(room).first(1 + test::pick(random, turns % 50 == 49 ? 100'000 : 5000)));
      if (n == 0) break;
      got.insert(got.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(n));
    }
    EXPECT_TRUE(std::ranges::equal(got, range)) << gap;
    EXPECT_LE(from->requests, gap == 0 ? turns : range.size() / std::min<std::uint64_t>(gap, range.size()) + 1) << gap;
  }
}

}  // namespace
}  // namespace weighbridge

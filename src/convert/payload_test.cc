// SPDX-License-Identifier: Apache-2.0
// Streaming and hashing payloads: a maker of the wrong number of bytes is an error, and hashes do not depend on how a
// stream is cut into pieces.
#include "convert/write.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "support/convert_testing.h"
#include "support/thrown.h"

namespace weighbridge::convert {
namespace {

// A payload of 100 bytes whose maker gives pieces of these sizes.
core::Payload made(std::initializer_list<std::size_t> pieces) {
  Builder builder;
  builder.tensor("w", DType::u8, {100}, testing::pattern(100));
  const Model model = builder.build();
  core::Payload p;
  p.form = core::Payload::Form::generated;
  p.tensor = model[0U];
  p.logical_size = p.stored_size = 100;
  p.make = [model, sizes = std::vector(pieces)](const Context&, const Sink& sink) {
    std::vector<std::byte> bytes(1000);
    for (const std::size_t size : sizes) sink(std::span(bytes).first(size));
  };
  return p;
}

struct Streamed {
  std::uint64_t bytes = 0;
  Finding finding;
};

Streamed stream_broken(const core::Payload& p) {
  Streamed out;
  out.finding =
      test::thrown([&] { stream(p, {}, [&](std::span<const std::byte> piece) { out.bytes += piece.size(); }); });
  return out;
}

TEST(Payload, IsAsLongAsItsMakerPromised) {
  std::uint64_t bytes = 0;
  stream(made({1, 60, 0, 39}), {}, [&](std::span<const std::byte> piece) { bytes += piece.size(); });
  EXPECT_EQ(bytes, 100U);
}

TEST(Payload, AMakerThatGivesTooMuchIsMisuseBeforeTheBytesGoAnywhere) {
  const Streamed long_one = stream_broken(made({60, 41}));
  EXPECT_EQ(long_one.finding.rule, "misuse/payload-size");
  EXPECT_EQ(long_one.finding.message, "tensor \"w\" gives more bytes than its shape says");
  EXPECT_EQ(long_one.bytes, 60U);
}

TEST(Payload, AMakerThatGivesTooLittleIsMisuseThatSaysHowMuchLacks) {
  const Streamed short_one = stream_broken(made({60, 0}));
  EXPECT_EQ(short_one.finding.rule, "misuse/payload-size");
  EXPECT_EQ(short_one.finding.message, "tensor \"w\" gives 40 bytes too few for its shape");
  EXPECT_EQ(stream_broken(made({})).bytes, 0U);
}

TEST(SegmentHasher, HashesEachSegmentHoweverTheStreamIsCut) {
  constexpr std::uint64_t kSize = 2 * kSegment + 12345;
  const Bytes bytes = testing::pattern(kSize);
  std::vector<codecs::Hash128> expected;
  for (std::uint64_t at = 0; at < kSize; at += kSegment)
    expected.push_back(codecs::xxh3_128(bytes.span.subspan(at, std::min(kSegment, kSize - at))));
  for (const std::uint64_t piece : {std::uint64_t{4099}, kSegment - 1, kSegment, kSegment + 1, kSize}) {
    std::vector<codecs::Hash128> hashes(segments(kSize));
    SegmentHasher hasher(kSize, hashes);
    for (std::uint64_t at = 0; at < kSize; at += piece)
      ASSERT_TRUE(hasher.update(bytes.span.subspan(at, std::min(piece, kSize - at))));
    EXPECT_EQ(hasher.left(), 0U);
    EXPECT_EQ(hashes, expected) << "in pieces of " << piece;
  }
}

TEST(SegmentHasher, TakesNothingOfAPieceThatIsTooLong) {
  const Bytes bytes = testing::pattern(11);
  std::vector<codecs::Hash128> hashes(1);
  SegmentHasher hasher(10, hashes);
  EXPECT_FALSE(hasher.update(bytes.span));
  EXPECT_EQ(hasher.left(), 10U);
  EXPECT_TRUE(hasher.update(bytes.span.first(10)));
  EXPECT_EQ(hashes[0], codecs::xxh3_128(bytes.span.first(10)));
  EXPECT_FALSE(hasher.update(bytes.span.first(1)));
}

}  // namespace
}  // namespace weighbridge::convert

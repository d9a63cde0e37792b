// SPDX-License-Identifier: Apache-2.0
// Checksums against published vectors, reference paths and each other.
#include "codecs/checksum.h"
#include "base/cpu.h"
#include "codecs/xxh3_kernel.h"
#include "support/random.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace weighbridge::codecs {
namespace {

using test::noise;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// Every length near a border of the folding loops, and long ones.
std::vector<std::size_t> awkward_lengths() {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i <= 300; ++i) out.push_back(i);
  for (const std::size_t around :
       {512u, 1024u, 1280u, 1536u, 4096u, 6496u, 6688u, 19632u, 19728u, 36016u, 36112u, 65536u})
    for (std::size_t d = 0; d <= 34; ++d) out.push_back(around - 17 + d);
  out.push_back(1'000'003);
  return out;
}

TEST(Crc, GivesThePublishedCheckValues) {
  EXPECT_EQ(crc32(bytes("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32c(bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32c({}), 0u);
  const std::vector<std::byte> zeros(32);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAu);
}

TEST(Adler32, GivesThePublishedValues) {  // RFC 1950's of "Wikipedia", in one piece and two
  EXPECT_EQ(adler32(bytes("Wikipedia")), 0x11E60398u);
  EXPECT_EQ(adler32(bytes("pedia"), adler32(bytes("Wiki"))), 0x11E60398u);
  EXPECT_EQ(adler32({}), 1u);
}

TEST(Crc, EveryPathEqualsTheTableAtEveryAwkwardLengthAndAlignment) {
  const auto data = noise(1'000'100);
  for (const CrcKind kind : {CrcKind::crc32, CrcKind::crc32c})
    for (const CrcPath path : {CrcPath::automatic, CrcPath::blocks, CrcPath::clmul, CrcPath::wide_clmul})
      for (const std::size_t size : awkward_lengths()) {
        const auto piece = std::span(data).subspan(size % 67, size);
        ASSERT_EQ(crc_by(path, kind, piece, 0x12345678u), crc_by(CrcPath::table, kind, piece, 0x12345678u))
            << size << " bytes, path " << static_cast<int>(path);
      }
}

TEST(Crc, CombinesTheSumsOfTwoChunks) {
  const auto data = noise(70'000);
  for (const CrcKind kind : {CrcKind::crc32, CrcKind::crc32c})
    for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{65'536}, data.size()}) {
      const auto a = std::span(data).first(cut), b = std::span(data).subspan(cut);
      EXPECT_EQ(combine(kind, crc(kind, a), crc(kind, b), b.size()), crc(kind, data)) << cut;
    }
}

TEST(Crc, CombinesOverLengthsThatNoMemoryHolds) {
  // Three chunks, the last two too long to checksum in a test: the order of joining must not matter.
  const std::uint64_t length_b = (std::uint64_t{1} << 40) + 12'345, length_c = (std::uint64_t{1} << 61) + 7;
  for (const CrcKind kind : {CrcKind::crc32, CrcKind::crc32c}) {
    const std::uint32_t a = crc(kind, bytes("a")), b = 0xDEADBEEFu, c = 0x12345678u;
    const std::uint32_t left = combine(kind, combine(kind, a, b, length_b), c, length_c);
    EXPECT_EQ(left, combine(kind, a, combine(kind, b, c, length_c), length_b + length_c));
    EXPECT_NE(left, combine(kind, a, combine(kind, b, c, length_c), length_b + length_c + 1));
  }
}

TEST(Crc, StreamsInPieces) {
  const auto data = noise(10'000);
  std::uint32_t sum = 0;
  for (std::size_t at = 0, step = 1; at < data.size(); at += step, step = step * 3 % 1009 + 1)
    sum = crc32c(std::span(data).subspan(at, std::min(step, data.size() - at)), sum);
  EXPECT_EQ(sum, crc32c(data));
}

TEST(Sha256, GivesThePublishedVectors) {
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, StreamsAndIsReusable) {
  const auto data = noise(100'000);
  Sha256 hasher;
  for (int round = 0; round < 3; ++round) {
    hasher.reset();
    hasher.update(std::span(data).first(33'333));
    hasher.update({});
    hasher.update(std::span(data).subspan(33'333));
    EXPECT_EQ(hasher.finish(), sha256(data));
  }
  Sha256 moved = std::move(hasher);
  moved.reset();
  EXPECT_EQ(moved.finish(), sha256({}));
}

TEST(Xxh3, GivesThePublishedValueOfNothing) { EXPECT_EQ(to_hex(xxh3_128({})), "99aa06d3014798d86001c324468d497f"); }

TEST(Xxh3, StreamsToTheSameValueAsAtOnce) {
  const auto data = noise(300'001);
  Xxh3_128 hasher;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{240}, std::size_t{241}, data.size()}) {
    hasher.reset();
    for (std::size_t at = 0; at < size; at += 4099)
      hasher.update(std::span(data).subspan(at, std::min<std::size_t>(4099, size - at)));
    EXPECT_EQ(hasher.finish(), xxh3_128(std::span(data).first(size))) << size;
  }
}

TEST(Xxh3, EveryInstructionSetGivesTheSameValue) {
  const auto data = noise(70'000);
  for (const std::size_t size : awkward_lengths()) {
    if (size > data.size()) continue;
    const auto plain = kXxh3Baseline.at_once(data.data(), size);
    const Hash128 best = xxh3_128(std::span(data).first(size));
    ASSERT_TRUE(plain.low == best.low && plain.high == best.high) << size;
#if defined(__x86_64__)
    if (!base::cpu_has(base::Cpu::avx2)) continue;
    const auto wide = kXxh3Avx2.at_once(data.data(), size);
    ASSERT_TRUE(plain.low == wide.low && plain.high == wide.high) << size;
#endif
  }
}

TEST(Hex, ReadsEitherCaseAndRefusesTheRest) {
  EXPECT_EQ(u32_from_hex("DEADbeef"), 0xDEADBEEFu);
  EXPECT_EQ(to_hex(0xDEADBEEFu), "deadbeef");
  for (const std::string_view wrong : {"", "deadbee", "deadbeef0", "deadbeeg", "0xadbeef", "-eadbeef", "deadbee\xEF"})
    EXPECT_EQ(u32_from_hex(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace weighbridge::codecs

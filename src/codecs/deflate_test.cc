// SPDX-License-Identifier: Apache-2.0
// Raw deflate against output of Python's zlib, its faults, and the contract of every row of the table of codecs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "codecs/codec.h"
#include "support/decoded.h"
#include "support/random.h"
#include "weighbridge/error.h"

namespace weighbridge::codecs {
namespace {

using test::Decoded, test::decoded, test::words;
using Data = std::vector<std::byte>;

Data data_of(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}
Data from_hex(std::string_view digits) {
  Data out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return out;
}

// What h5py's filter stored for the first rows of golden().
TEST(Lzf, ReadsWhatLibLzfWrote) {
  std::string expected;
  for (int i = 0; i < 12; ++i) expected += "tensor " + std::to_string(i) + " weighs " + std::to_string(i * i) + "\n";
  const Data stored = from_hex(
      "1274656e736f7220302077656967687320300a7480110031c0110031c0110032c0110034c0110033c0110039c0110034c011013136c01200"
      "35"
      "c012013235c0120036c0120033e000250037c0120034e0004b0038c0120036e000700039c0120038e000950031e000ba013130e001bce001"
      "bd"
      "0232310a");
  Data out(expected.size());
  ASSERT_TRUE(decode(kLzf, stored, out).ok());
  EXPECT_EQ(out, data_of(expected));
  for (std::size_t size = 0; size < stored.size(); ++size)
    EXPECT_FALSE(decode(kLzf, std::span(stored).first(size), out).ok()) << size;
  Data short_of(expected.size() - 1), more(expected.size() + 1);
  EXPECT_EQ(decode(kLzf, stored, short_of).fault, DecodeFault::too_long);
  EXPECT_EQ(decode(kLzf, stored, more).fault, DecodeFault::too_short);
  EXPECT_EQ(decode(kLzf, from_hex("00002001"), out).fault, DecodeFault::corrupt);  // 3 bytes from 2 before
}

// 300,000 bytes that repeat what is 8,192 before: the window slides many times.
TEST(Lzf, ReferencesReachEightKibibytesBack) {
  Data stored, expected;
  for (int i = 0; i < 8192; ++i) {
    if (i % 32 == 0) stored.push_back(std::byte{31});
    stored.push_back(static_cast<std::byte>(i * 7 + i / 256));
    expected.push_back(stored.back());
  }
  for (int i = 0; i < 1200; ++i) {
    for (const int each : {0xFF, 0xFF, 0xFF}) stored.push_back(static_cast<std::byte>(each));
    for (int k = 0; k < 264; ++k) expected.push_back(expected[expected.size() - 8192]);
  }
  Data out(expected.size());
  ASSERT_TRUE(decode(kLzf, stored, out).ok());
  EXPECT_EQ(out, expected);
}

// What the golden bytes below decode to.
Data golden() {
  std::string out;
  for (int i = 0; i < 60; ++i) out += "tensor " + std::to_string(i) + " weighs " + std::to_string(i * i) + "\n";
  return data_of(out);
}

// zlib.compressobj(9, zlib.DEFLATED, -15), the same with zlib.Z_FIXED, and level 0: the three kinds of blocks.
const std::string kDynamic =
    "4d944b4e04310c44f79c628e10ff92ce8146301b909891b83e48c8f5b22db99d7a76b95ff7cfe7d7f76ddc7eee8ff78fe76dbcbdfe15"
    "6bc55af156b2956865b792fa6ab6542d79b5345b0a552d3557afaba5a907774b975c99acdbc03cee9d4a0158aaa3058ef5b281b1e5d0"
    "0081c42674540ac62f7a0a279cd7379360ce224a885c449954b2924b3d5d44e57add45544b3e5d44132217d13c2a45b48e9e225ac7eb"
    "ac089f21a20d518868c31eec6830a660498389065b32861fc5eaa18a89ca4a4358166c3fae232778109815994ad237414be237496ac2"
    "b68874c27691fd3c12c89124111cb0251934ce2e09a10ffa8acd63e0416c9e437e6b906dd84a6c3e8f5ab1f9a26f05878087129befe3"
    "3721b638d88a5f8531875ac72dd1970b0be65b9c58feede217";
const std::string kFixed =
    "2b49cd2bce2f523050284fcd4ccf285630e02a818818c2440c6122463011139888314cc412266202d76506133285091999c284cc6042"
    "c67055e670c3e16659c084cce0165ac2842ce0ae32843bddd000e17884eb8d102ae11e3034819b68688c7031dc664384372ce12e3444"
    "7804e113433384ef102ae19e31b2409809f78eb111c2764b444820c219ee2313848f8ce03e323141a844448905dc4c23b88f4c8de0b6"
    "1bc17d646a0e77a711dc4766081f19c17d6486a412ee23732433e13e3247b21d114508771ac37d6489f09131dc479608bf1b23e2c800"
    "114cc68848324084a83122960c11816f6c8a887a84af8ccd10a2882835867bcbd01811fbc61648e904e106b8c70c4d1169ca0491facc"
    "105e3341243f33444a3541f8cd1c91a44d107eb340a47d13a41488c8242688246880f09b09220d1a22b29d0922111a1920cc85fbcdc8"
    "d800e106b8df8c4c0ce0ee353540a46d84df4ce17e333243520bf79b9139c25c5363444640b8c114ee37234ba46202ee376324bf9922"
    "8a0a434438989a23e52584b9881c668c085f5344163301c60500";
const std::string kStored = "010600f9ff73746f726564", kEmpty = "0300";

DecodeFault fault_of(const Codec& codec, std::span<const std::byte> stored, std::uint64_t demanded) {
  const Decoded whole = decoded(codec, stored, demanded), crumbs = decoded(codec, stored, demanded, 1);
  EXPECT_EQ(whole.result.fault, crumbs.result.fault) << whole.result.sentence << " | " << crumbs.result.sentence;
  EXPECT_EQ(whole.result.sentence.empty(), whole.result.ok());
  return whole.result.fault;
}

TEST(Deflate, DecodesWhatPythonsZlibMade) {
  const Data expected = golden();
  for (const std::string& hex : {kDynamic, kFixed}) {
    const Decoded out = decoded(kDeflate, from_hex(hex), expected.size());
    EXPECT_TRUE(out.result.ok()) << out.result.sentence;
    EXPECT_EQ(out.data, expected);
  }
  EXPECT_EQ(decoded(kDeflate, from_hex(kStored), 6).data, data_of("stored"));
  EXPECT_TRUE(decoded(kDeflate, from_hex(kEmpty), 0).result.ok());
}

TEST(Deflate, FindsEveryTruncationAndWhatFollows) {
  const std::size_t size = golden().size();
  for (const std::string& hex : {kDynamic, kFixed}) {
    const Data stored = from_hex(hex);
    for (std::size_t n = 0; n < stored.size(); ++n)
      EXPECT_EQ(fault_of(kDeflate, std::span(stored).first(n), size), DecodeFault::truncated) << n;
    for (const Data& more : {Data(1), Data(200'000), stored}) {
      Data longer = stored;
      longer.insert(longer.end(), more.begin(), more.end());
      EXPECT_EQ(fault_of(kDeflate, longer, size), DecodeFault::trailing);
    }
    EXPECT_EQ(fault_of(kDeflate, stored, size - 1), DecodeFault::too_long);
    EXPECT_EQ(fault_of(kDeflate, stored, 0), DecodeFault::too_long);
    EXPECT_EQ(fault_of(kDeflate, stored, size + 1), DecodeFault::too_short);
  }
}

TEST(Deflate, RefusesCorruptDataAndTheHeadersOfOthers) {
  EXPECT_EQ(fault_of(kDeflate, from_hex("07"), 1), DecodeFault::corrupt);                      // an invalid block type
  EXPECT_EQ(fault_of(kDeflate, from_hex("010600f8ff73746f726564"), 6), DecodeFault::corrupt);  // length, complement
  EXPECT_EQ(fault_of(kDeflate, from_hex("030200"), 3), DecodeFault::corrupt);         // a distance too far back
  EXPECT_FALSE(decoded(kDeflate, from_hex("1f8b0800000000000003"), 10).result.ok());  // gzip
  EXPECT_FALSE(decoded(kDeflate, from_hex("789c" + kStored), 6).result.ok());         // zlib
}

// 64 MiB of zeros in 64 KiB: decoding stops as soon as it exceeds the demanded size, with buffers of constant size.
TEST(Deflate, StopsABombAtTheDemandedSize) {
  const Data bomb = encode(kDeflate, Data(std::size_t{64} << 20));
  ASSERT_LT(bomb.size(), 80'000u);
  const Decoded out = decoded(kDeflate, bomb, 1000);
  EXPECT_EQ(out.result.fault, DecodeFault::too_long);
  EXPECT_LE(out.data.size(), 1000u);
  EXPECT_LT(out.result.offset, 1000u);
}

TEST(Deflate, TellsTheWindowAgainstTheMemoryLimit) {
  const Data data = words(100'000), stored = encode(kDeflate, data);
  EXPECT_TRUE(decoded(kDeflate, stored, data.size(), 4096, 32 << 10).result.ok());
  const DecodeResult refused = decoded(kDeflate, stored, data.size(), 4096, (32 << 10) - 1).result;
  EXPECT_EQ(refused.fault, DecodeFault::memory);
  EXPECT_EQ(refused.found, 32U << 10);
  EXPECT_TRUE(decoded(kDeflate, encode(kDeflate, Data(100)), 100, 4096, 100).result.ok());
}

TEST(Deflate, AnySingleByteMutationGivesAnOutcome) {
  const Data good = from_hex(kDynamic);
  const std::size_t size = golden().size();
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const unsigned mask : {0x01u, 0x10u, 0x80u, 0xFFu}) {
      Data bad = good;
      bad[i] ^= static_cast<std::byte>(mask);
      const Decoded out = decoded(kDeflate, bad, size);
      EXPECT_LE(out.data.size(), size);
      if (out.result.ok()) {
        EXPECT_EQ(out.data.size(), size);
      }
    }
}

// Tests for every row.
class Codecs : public testing::TestWithParam<const Codec*> {};

TEST_P(Codecs, ReturnWhatWasEncodedAtEachLevel) {
  const Codec& codec = *GetParam();
  EXPECT_EQ(find(codec.name), &codec);
  for (const std::size_t size : {0u, 1u, 100u, 131'072u, 131'073u, 1'500'000u}) {
    const Data data = words(size);
    for (const int level : {codec.lowest, codec.level, std::min(codec.highest, 9), codec.lowest - 100}) {
      const Data stored = encode(codec, data, level);
      EXPECT_LE(stored.size(), codec.bound(size));
      Data back(size);
      EXPECT_TRUE(decode(codec, stored, back).ok());
      EXPECT_EQ(back, data);
    }
  }
  EXPECT_EQ(encode(codec, words(1000), 1 << 30), encode(codec, words(1000), codec.highest));
}

TEST_P(Codecs, BoundsHoldForNoise) {
  const Codec& codec = *GetParam();
  std::mt19937 random(3);
  Data noise(700'000);
  for (std::byte& b : noise) b = static_cast<std::byte>(random());
  for (const std::size_t size : {1u, 5u, 16'384u, 700'000u})
    EXPECT_LE(encode(codec, std::span(noise).first(size)).size(), codec.bound(size));
}

TEST_P(Codecs, DoNotDependOnSlicing) {
  const Codec& codec = *GetParam();
  const Data data = words(1'000'000), one = encode(codec, data);
  const auto encoder = codec.encoder();
  for (const std::size_t step : {1'000u, 65'537u, 999'999u}) {
    Data out;
    const Encoder::Sink append = [&](std::span<const std::byte> p) { out.insert(out.end(), p.begin(), p.end()); };
    encoder->begin(data.size(), codec.level);
    for (std::size_t at = 0; at < data.size(); at += step)
      encoder->push(std::span(data).subspan(at, std::min(step, data.size() - at)), append);
    encoder->finish(append);
    EXPECT_EQ(out, one) << step;
  }
}

TEST_P(Codecs, EncodersInsistOnTheSizeTheyWereBegunFor) {
  const auto encoder = GetParam()->encoder();
  const Encoder::Sink drop = [](std::span<const std::byte>) {};
  const Data data(100);
  encoder->begin(99, 1);
  EXPECT_THROW(encoder->push(data, drop), Error);
  encoder->begin(101, 1);
  encoder->push(data, drop);
  EXPECT_THROW(encoder->finish(drop), Error);
  encoder->begin(100, 1);  // and is usable afterwards
  encoder->push(data, drop);
  encoder->finish(drop);
}

TEST_P(Codecs, FollowEachOtherOnlyWhereTheTableSaysSo) {
  const Codec& codec = *GetParam();
  const Data data = words(3000);
  Data two = encode(codec, data);
  two.insert(two.end(), two.begin(), two.begin() + static_cast<std::ptrdiff_t>(two.size()));
  EXPECT_EQ(decoded(codec, two, 6000).result.ok(), codec.frames);
}

TEST_P(Codecs, WantExactlyWhatIsDemanded) {
  const Codec& codec = *GetParam();
  const Data stored = encode(codec, words(3000));
  for (const std::size_t demanded : {0u, 2999u, 3001u}) EXPECT_NE(fault_of(codec, stored, demanded), DecodeFault::none);
  EXPECT_EQ(fault_of(codec, {}, 1), DecodeFault::truncated);
}

TEST_P(Codecs, StopWhenTheSinkSaysSo) {
  const Codec& codec = *GetParam();
  const Data stored = encode(codec, words(1000));
  bool given = false;
  const DecodeResult result = LentDecoder(codec)->decode(
      1000, 1 << 20,
      [&](std::span<std::byte> into) {
        if (std::exchange(given, true)) return std::size_t{0};
        std::ranges::copy(stored, into.begin());
        return stored.size();
      },
      [](std::span<const std::byte>) { return false; });
  EXPECT_EQ(result.fault, DecodeFault::stopped);
}

// A sink that decodes another part does not disturb the decoder that feeds it.
TEST_P(Codecs, NestWithinASink) {
  const Codec& codec = *GetParam();
  const Data data = words(300'000), stored = encode(codec, data);
  std::size_t at = 0, seen = 0;
  const DecodeResult result = LentDecoder(codec)->decode(
      data.size(), 1 << 30,
      [&](std::span<std::byte> into) {
        const std::size_t n = std::min(into.size(), stored.size() - at);
        std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(at), n, into.begin());
        at += n;
        return n;
      },
      [&](std::span<const std::byte> piece) {
        EXPECT_EQ(decoded(codec, stored, data.size()).data, data);
        EXPECT_TRUE(std::ranges::equal(piece, std::span(data).subspan(seen, piece.size())));
        seen += piece.size();
        return true;
      });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(seen, data.size());
}

INSTANTIATE_TEST_SUITE_P(All, Codecs, testing::ValuesIn(all().begin(), all().end()), [](const auto& each) {
  std::string name(each.param->name);
  std::ranges::replace(name, '-', '_');  // gtest's names have no others
  return name;
});

}  // namespace
}  // namespace weighbridge::codecs

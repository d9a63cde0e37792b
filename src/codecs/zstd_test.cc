// SPDX-License-Identifier: Apache-2.0
// One frame, exactly: every fault of reading G1 from a frame made for it, and frames that do not depend on slicing.
#include "codecs/zstd.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <random>

#include "base/endian.h"
#include "weighbridge/error.h"

namespace weighbridge::codecs {
namespace {

using Data = std::vector<std::byte>;

// Compressible, yet without end: words of a small vocabulary.
Data text(std::size_t size, std::uint32_t seed = 7) {
  std::mt19937 random(seed);
  Data out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = i % 5 == 4 || i < 16 ? static_cast<std::byte>(random())
                                  : out[i - 1 - (random() % std::min<std::size_t>(i, 12))];
  return out;
}

Data encode(std::span<const std::byte> data) {
  ZstdEncoder encoder;
  Data out;
  encoder.encode(data, out);
  return out;
}

// A frame by libzstd itself, with or without its content size, checksum and a window of its own.
Data frame(std::span<const std::byte> data, bool sized, bool checksum = false, int window_log = 0) {
  Data out(ZSTD_compressBound(data.size()) + 64);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, sized ? 1 : 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  if (window_log != 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  for (std::size_t at = 0; at < data.size(); at += 1000) {  // in pieces, so that libzstd cannot know the size
    ZSTD_inBuffer from{data.data() + at, std::min<std::size_t>(1000, data.size() - at), 0};
    ZSTD_compressStream2(context, &to, &from, ZSTD_e_continue);
  }
  ZSTD_inBuffer none{nullptr, 0, 0};
  EXPECT_EQ(ZSTD_compressStream2(context, &to, &none, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

struct Decoded {
  ZstdResult result;
  Data data;
  std::size_t largest = 0;
};

Decoded stream(ZstdDecoder& decoder, std::span<const std::byte> stored, std::uint64_t demanded,
               std::size_t step = 100'000, std::uint64_t memory = std::uint64_t{256} << 20) {
  Decoded out;
  std::size_t at = 0;
  out.result = decoder.decode(
      demanded, memory,
      [&](std::span<std::byte> into) {
        const std::size_t size = std::min({into.size(), step, stored.size() - at});
        std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(at), size, into.begin());
        at += size;
        return size;
      },
      [&](std::span<const std::byte> piece) {
        out.data.insert(out.data.end(), piece.begin(), piece.end());
        out.largest = std::max(out.largest, piece.size());
        return true;
      });
  return out;
}

// The fault of the streaming decoder, after seeing that the one for memory finds the same.
ZstdResult fault_of(std::span<const std::byte> stored, std::size_t demanded) {
  ZstdDecoder decoder;
  const Decoded whole = stream(decoder, stored, demanded), crumbs = stream(decoder, stored, demanded, 1);
  Data out(demanded);
  const ZstdResult memory = decoder.decode(stored, out);
  EXPECT_EQ(whole.result.fault, crumbs.result.fault) << whole.result.sentence << " | " << crumbs.result.sentence;
  EXPECT_EQ(whole.result.fault, memory.fault) << whole.result.sentence << " | " << memory.sentence;
  EXPECT_EQ(whole.result.sentence.empty(), whole.result.ok());
  if (whole.result.ok()) {
    EXPECT_EQ(whole.data, out);
  }
  return whole.result;
}

TEST(Zstd, ReturnsWhatWasEncoded) {
  ZstdDecoder decoder;
  for (const std::size_t size : {0u, 1u, 100u, 4096u, 131'072u, 131'073u, 3'000'000u, 9'000'000u}) {
    const Data data = text(size), stored = encode(data);
    EXPECT_LE(stored.size(), zstd_compress_bound(size));
    EXPECT_EQ(ZSTD_getFrameContentSize(stored.data(), stored.size()), size);
    const Decoded out = stream(decoder, stored, size);
    EXPECT_TRUE(out.result.ok()) << out.result.sentence;
    EXPECT_EQ(out.data, data);
    Data again(size);
    EXPECT_TRUE(decoder.decode(stored, again).ok());
    EXPECT_EQ(again, data);
  }
}

TEST(Zstd, DecodesFramesWithoutContentSizeAndWithChecksum) {
  for (const std::size_t size : {1u, 5'000u, 700'000u, 5'000'000u}) {
    const Data data = text(size);
    EXPECT_TRUE(fault_of(frame(data, false), size).ok());
    EXPECT_TRUE(fault_of(frame(data, false, true), size).ok());
    EXPECT_TRUE(fault_of(frame(data, false, false, 10), size).ok());
  }
}

TEST(Zstd, FramesDoNotDependOnSlicing) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{ZstdEncoder::kWhole},
                                 std::size_t{ZstdEncoder::kWhole} + 1, std::size_t{21'000'000}}) {
    const Data data = text(size), one = encode(data);
    ZstdEncoder encoder;
    for (const std::size_t step : {std::size_t{65'537}, std::size_t{1'000'000}, std::size_t{5'000'000}}) {
      Data out;
      const ZstdEncoder::Sink append = [&](std::span<const std::byte> p) { out.insert(out.end(), p.begin(), p.end()); };
      encoder.begin(size);
      for (std::size_t at = 0; at < size; at += step)
        encoder.push(std::span(data).subspan(at, std::min(step, size - at)), append);
      encoder.finish(append);
      EXPECT_EQ(out, one) << size << " in steps of " << step;
    }
  }
}

TEST(Zstd, EncoderInsistsOnTheSizeItWasBegunFor) {
  ZstdEncoder encoder;
  const ZstdEncoder::Sink drop = [](std::span<const std::byte>) {};
  const Data data(100);
  encoder.begin(99);
  EXPECT_THROW(encoder.push(data, drop), Error);
  encoder.begin(101);
  encoder.push(data, drop);
  EXPECT_THROW(encoder.finish(drop), Error);
  Data out;  // and is usable afterwards
  encoder.encode(data, out);
  EXPECT_EQ(out, encode(data));
}

TEST(Zstd, FindsEveryTruncation) {
  const Data data = text(3000);
  for (const Data& stored : {encode(data), frame(data, false, true)})
    for (std::size_t size = 0; size < stored.size(); ++size)
      EXPECT_EQ(fault_of(std::span(stored).first(size), data.size()).fault, ZstdFault::truncated) << size;
}

TEST(Zstd, RefusesAContentSizeOtherThanTheDemandedOne) {
  const Data stored = encode(text(3000));
  for (const std::size_t demanded : {0u, 2999u, 3001u}) {
    const ZstdResult result = fault_of(stored, demanded);
    EXPECT_EQ(result.fault, ZstdFault::content_size);
    EXPECT_EQ(result.expected, demanded);
    EXPECT_EQ(result.found, 3000u);
  }
}

TEST(Zstd, RefusesMoreAndLessThanDemandedWhenTheFrameStatesNothing) {
  for (const int window_log : {0, 10}) {  // straight into the result, and through a window
    const Data stored = frame(text(5000), false, false, window_log);
    for (const std::size_t demanded : {0u, 1u, 3000u, 4999u})
      EXPECT_EQ(fault_of(stored, demanded).fault, ZstdFault::too_long) << demanded;
    EXPECT_EQ(fault_of(stored, 5001).fault, ZstdFault::too_short);
    EXPECT_EQ(fault_of(stored, 5'000'000).fault, ZstdFault::too_short);
  }
}

TEST(Zstd, RefusesWhateverFollowsTheFrame) {
  const Data data = text(3000), one = encode(data);
  Data two = one, zero = one, skippable = one;
  two.insert(two.end(), one.begin(), one.end());
  zero.push_back(std::byte{0});
  for (const unsigned b : {0x50u, 0x2Au, 0x4Du, 0x18u, 0u, 0u, 0u, 0u}) skippable.push_back(static_cast<std::byte>(b));
  for (const Data& stored : {two, zero, skippable}) {
    const ZstdResult result = fault_of(stored, data.size());
    EXPECT_EQ(result.fault, ZstdFault::trailing);
    EXPECT_EQ(result.offset, one.size());
  }
  EXPECT_EQ(fault_of(two, data.size()).sentence, "a second zstd frame follows the first");
}

TEST(Zstd, RefusesWhatIsNoFrame) {
  Data stored = encode(text(3000));
  Data skippable(16);
  base::store_le(skippable.data(), 0x184D2A5Fu);
  EXPECT_EQ(fault_of(skippable, 3000).fault, ZstdFault::skippable_frame);
  stored[0] ^= std::byte{1};
  EXPECT_EQ(fault_of(stored, 3000).fault, ZstdFault::no_frame);
  stored[0] ^= std::byte{1};
  stored[4] |= std::byte{8};
  EXPECT_EQ(fault_of(stored, 3000).fault, ZstdFault::reserved_bit);
  EXPECT_EQ(fault_of(Data(64), 3000).fault, ZstdFault::no_frame);
}

TEST(Zstd, RefusesADictionary) {
  // Magic, single segment with a 1-byte dictionary id and a 1-byte size, an empty raw block that is the last.
  Data stored;
  for (const unsigned b : {0x28u, 0xB5u, 0x2Fu, 0xFDu, 0x21u, 0x07u, 0x00u, 0x01u, 0x00u, 0x00u})
    stored.push_back(static_cast<std::byte>(b));
  const ZstdResult result = fault_of(stored, 0);
  EXPECT_EQ(result.fault, ZstdFault::dictionary);
  EXPECT_EQ(result.found, 7u);
}

// A frame of one run of `size` zeros under a window of choice, content size not stated.
Data run_frame(unsigned window_code, std::uint32_t size) {
  Data stored;
  for (const unsigned b : {0x28u, 0xB5u, 0x2Fu, 0xFDu, 0x00u, window_code}) stored.push_back(static_cast<std::byte>(b));
  const std::uint32_t block = size << 3 | 1 << 1 | 1;  // RLE, last
  for (unsigned i = 0; i < 3; ++i) stored.push_back(static_cast<std::byte>(block >> (8 * i)));
  stored.push_back(std::byte{0});
  return stored;
}

TEST(Zstd, TakesWindowsUpTo128MiBAndNoLarger) {
  EXPECT_TRUE(fault_of(run_frame(17 << 3, 1000), 1000).ok());
  EXPECT_EQ(fault_of(run_frame(17 << 3 | 1, 1000), 1000).fault, ZstdFault::window);
  EXPECT_EQ(fault_of(run_frame(0xFF, 1000), 1000).fault, ZstdFault::window);
}

TEST(Zstd, CountsTheSmallerOfWindowAndDemandAgainstTheMemoryLimit) {
  ZstdDecoder decoder;
  EXPECT_TRUE(stream(decoder, run_frame(17 << 3, 1000), 1000, 100, 1000).result.ok());
  const ZstdResult refused = stream(decoder, run_frame(17 << 3, 1000), 1000, 100, 999).result;
  EXPECT_EQ(refused.fault, ZstdFault::memory);
  EXPECT_EQ(refused.found, 1000u);
  const Data data = text(5'000'000), stored = frame(data, true, false, 16);
  EXPECT_TRUE(stream(decoder, stored, data.size(), 4096, 1 << 16).result.ok());
  EXPECT_EQ(stream(decoder, stored, data.size(), 4096, (1 << 16) - 1).result.fault, ZstdFault::memory);
  EXPECT_LE(stream(decoder, stored, data.size()).largest, std::size_t{1} << 17);
}

TEST(Zstd, FindsFlippedBitsThroughTheChecksum) {
  const Data data = text(2000);
  Data stored = frame(data, false, true);
  stored.back() ^= std::byte{1};
  EXPECT_EQ(fault_of(stored, data.size()).fault, ZstdFault::corrupt);
}

TEST(Zstd, AnySingleByteMutationGivesAnAnswer) {
  const Data data = text(600);
  for (const Data& good : {encode(data), frame(data, false, true)})
    for (std::size_t i = 0; i < good.size(); ++i)
      for (const unsigned mask : {0x01u, 0x80u, 0xFFu}) {
        Data bad = good;
        bad[i] ^= static_cast<std::byte>(mask);
        ZstdDecoder decoder;
        const Decoded out = stream(decoder, bad, data.size());
        if (out.result.ok()) {
          EXPECT_EQ(out.data.size(), data.size());
        }
      }
}

TEST(Zstd, StopsWhenTheSinkSaysSo) {
  ZstdDecoder decoder;
  const Data stored = encode(text(1000));
  bool given = false;
  const ZstdResult result = decoder.decode(
      1000, 1 << 20,
      [&](std::span<std::byte> into) {
        if (std::exchange(given, true)) return std::size_t{0};
        std::copy(stored.begin(), stored.end(), into.begin());
        return stored.size();
      },
      [](std::span<const std::byte>) { return false; });
  EXPECT_EQ(result.fault, ZstdFault::stopped);
}

TEST(Zstd, ManyTinyPartsAreCheap) {
  ZstdEncoder encoder;
  ZstdDecoder decoder;
  Data data = text(256), out, back(256);
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    base::store_le(data.data(), i);
    encoder.encode(data, out);
    ASSERT_TRUE(decoder.decode(out, back).ok());
    ASSERT_EQ(back, data);
  }
}

}  // namespace
}  // namespace weighbridge::codecs

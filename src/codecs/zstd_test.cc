// SPDX-License-Identifier: Apache-2.0
// Decoding to exactly the demanded size: a frame for every fault of reading G1, several frames, and output that does
// not depend on how the input is split.
#include "codecs/zstd.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/endian.h"
#include "support/decoded.h"
#include "support/random.h"
#include "weighbridge/error.h"

namespace weighbridge::codecs {
namespace {

using test::Decoded, test::decoded, test::words;
using Data = std::vector<std::byte>;

Data encode(std::span<const std::byte> data) { return codecs::encode(kZstd, data); }

// A frame made by libzstd, with or without content size, checksum and a given window.
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

// The fault, after checking that tiny pieces give the same one.
DecodeResult fault_of(std::span<const std::byte> stored, std::size_t demanded) {
  const Decoded whole = decoded(kZstd, stored, demanded),
                crumbs = decoded(kZstd, stored, demanded, stored.size() < 20'000 ? 1 : 997);
  Data out(demanded);
  const DecodeResult memory = codecs::decode(kZstd, stored, out);
  EXPECT_EQ(whole.result.fault, crumbs.result.fault) << whole.result.sentence << " | " << crumbs.result.sentence;
  EXPECT_EQ(whole.result.fault, memory.fault) << whole.result.sentence << " | " << memory.sentence;
  EXPECT_EQ(whole.result.sentence.empty(), whole.result.ok());
  if (whole.result.ok()) {
    EXPECT_EQ(whole.data, out);
  }
  return whole.result;
}

TEST(Zstd, ReturnsWhatWasEncoded) {
  for (const std::size_t size : {0u, 1u, 100u, 4096u, 131'072u, 131'073u, 3'000'000u, 9'000'000u}) {
    const Data data = words(size), stored = encode(data);
    EXPECT_LE(stored.size(), kZstd.bound(size));
    EXPECT_EQ(ZSTD_getFrameContentSize(stored.data(), stored.size()), size);
    const Decoded out = decoded(kZstd, stored, size);
    EXPECT_TRUE(out.result.ok()) << out.result.sentence;
    EXPECT_EQ(out.data, data);
    Data again(size);
    EXPECT_TRUE(codecs::decode(kZstd, stored, again).ok());
    EXPECT_EQ(again, data);
  }
}

// Each thread of a pool kept up to 128 MiB for its life, which no job owned.
TEST(Zstd, ADecoderWithALargeWindowIsNotKeptForTheLifeOfTheThread) {
  const Data small = words(3'000'000), large = words(20'000'000);
  const auto decode = [](std::span<const std::byte> stored, std::size_t size) {
    Data out(size);
    EXPECT_TRUE(codecs::decode(kZstd, stored, out).ok());
  };
  const Data with_window = frame(large, false, false, 24), whole = frame(large, false, false, 27),
             usual = frame(small, false, false, 20);
  std::thread([&] {
    EXPECT_EQ(LentDecoder::kept_here(), 0U);
    decode(with_window, large.size());
    EXPECT_EQ(LentDecoder::kept_here(), 0U) << "a window of 16 MiB";
    decode(whole, large.size());
    EXPECT_EQ(LentDecoder::kept_here(), 0U) << "a frame of 20 MB, smaller than its window";
    decode(usual, small.size());
    EXPECT_GT(LentDecoder::kept_here(), std::size_t{1} << 20) << "it is created anew for every part";
    EXPECT_LE(LentDecoder::kept_here(), LentDecoder::kMaxKept);
    decode(with_window, large.size());
    EXPECT_EQ(LentDecoder::kept_here(), 0U);
  }).join();
}

TEST(Zstd, DecodesFramesWithoutContentSizeAndWithChecksum) {
  for (const std::size_t size : {1u, 5'000u, 700'000u, 5'000'000u}) {
    const Data data = words(size);
    EXPECT_TRUE(fault_of(frame(data, false), size).ok());
    EXPECT_TRUE(fault_of(frame(data, false, true), size).ok());
    EXPECT_TRUE(fault_of(frame(data, false, false, 10), size).ok());
  }
}

TEST(Zstd, FramesDoNotDependOnSlicing) {
  constexpr std::size_t kWhole = std::size_t{8} << 20;  // up to here in one call of the library
  for (const std::size_t size : {std::size_t{1000}, kWhole, kWhole + 1, std::size_t{21'000'000}}) {
    const Data data = words(size), one = encode(data);
    const auto encoder = kZstd.encoder();
    for (const std::size_t step : {std::size_t{65'537}, std::size_t{1'000'000}, std::size_t{5'000'000}}) {
      Data out;
      const Encoder::Sink append = [&](std::span<const std::byte> p) { out.insert(out.end(), p.begin(), p.end()); };
      encoder->begin(size, kZstd.level);
      for (std::size_t at = 0; at < size; at += step)
        encoder->push(std::span(data).subspan(at, std::min(step, size - at)), append);
      encoder->finish(append);
      EXPECT_EQ(out, one) << size << " in steps of " << step;
    }
  }
}

TEST(Zstd, FindsEveryTruncation) {
  const Data data = words(3000);
  for (const Data& stored : {encode(data), frame(data, false, true)})
    for (std::size_t size = 0; size < stored.size(); ++size)
      EXPECT_EQ(fault_of(std::span(stored).first(size), data.size()).fault, DecodeFault::truncated) << size;
}

TEST(Zstd, RefusesAContentSizeOtherThanTheDemandedOne) {
  const Data stored = encode(words(3000));
  for (const std::size_t demanded : {0u, 2999u, 3001u}) {
    const DecodeResult result = fault_of(stored, demanded);
    // Another frame might hold the rest, so only the end is a fault.
    EXPECT_EQ(result.fault, demanded < 3000 ? DecodeFault::content_size : DecodeFault::too_short);
    EXPECT_EQ(result.expected, demanded);
    EXPECT_EQ(result.found, 3000u);
  }
}

TEST(Zstd, RefusesMoreAndLessThanDemandedWhenTheFrameStatesNothing) {
  for (const int window_log : {0, 10}) {  // straight into the result, and through a window
    const Data stored = frame(words(5000), false, false, window_log);
    for (const std::size_t demanded : {0u, 1u, 3000u, 4999u})
      EXPECT_EQ(fault_of(stored, demanded).fault, DecodeFault::too_long) << demanded;
    EXPECT_EQ(fault_of(stored, 5001).fault, DecodeFault::too_short);
    EXPECT_EQ(fault_of(stored, 5'000'000).fault, DecodeFault::too_short);
  }
}

Data skippable(std::size_t size, unsigned kind = 0) {
  Data out(8 + size, std::byte{0x5A});
  base::store_le(out.data(), std::uint32_t{0x184D2A50} + kind);
  base::store_le(out.data() + 4, static_cast<std::uint32_t>(size));
  return out;
}
Data operator+(Data a, const Data& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Zstd, FramesThatFollowEachOtherCountTogether) {
  const Data a = words(3000), b = words(200'000, 8), c = words(3'000'000, 9);
  const Data frames[] = {
      encode(a) + encode(b) + encode(c),
      frame(a, false) + frame(b, false, true, 10) + frame(c, false, false, 17),
      skippable(0) + encode(a) + skippable(700'000, 15) + frame(b, false) + encode({}) + encode(c) + skippable(5, 7),
  };
  const std::size_t size = a.size() + b.size() + c.size();
  for (const Data& stored : frames) {
    EXPECT_TRUE(fault_of(stored, size).ok());
    EXPECT_EQ(decoded(kZstd, stored, size).data, a + b + c);
    const DecodeFault less = fault_of(stored, size - 1).fault;
    EXPECT_TRUE(less == DecodeFault::content_size || less == DecodeFault::too_long);
    EXPECT_EQ(fault_of(stored, size + 1).fault, DecodeFault::too_short);
    EXPECT_EQ(fault_of(std::span(stored).first(stored.size() - 1), size).fault, DecodeFault::truncated);
  }
  EXPECT_TRUE(fault_of(skippable(100), 0).ok());
  EXPECT_EQ(fault_of(skippable(100), 1).fault, DecodeFault::too_short);
  EXPECT_TRUE(fault_of(encode({}) + encode({}), 0).ok());
}

// A later frame may have another window: each is checked by its own header and the rest of the demanded size.
TEST(Zstd, ALaterFrameTakesNoMoreMemoryThanItMay) {
  const Data a = words(600'000), b = words(500'000, 8);
  const Data stored = frame(a, false, false, 16) + frame(b, false, false, 27);
  EXPECT_TRUE(decoded(kZstd, stored, 1'100'000, 4096, 500'000).result.ok());
  const DecodeResult refused = decoded(kZstd, stored, 1'100'000, 4096, 499'999).result;
  EXPECT_EQ(refused.fault, DecodeFault::memory);
  EXPECT_EQ(refused.found, 500'000u);
  EXPECT_EQ(refused.offset, frame(a, false, false, 16).size() + 5);
}

TEST(Zstd, RefusesWhatIsNoFrameBehindAFrame) {
  const Data data = words(3000), one = encode(data);
  for (const Data& more : {Data(1), Data(3), Data(100)}) {
    const DecodeResult result = fault_of(one + more, data.size());
    EXPECT_EQ(result.fault, DecodeFault::trailing);
    EXPECT_EQ(result.offset, one.size());
  }
}

TEST(Zstd, SaysWhatFramesStateWithoutDecoding) {
  const auto stated = [](const Data& stored) {
    std::size_t at = 0;
    return zstd_stated_size([&](std::span<std::byte> room) {
      const std::size_t n = std::min({room.size(), stored.size() - at, std::size_t{1000}});
      std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(at), n, room.begin());
      at += n;
      return n;
    });
  };
  const Data a = words(400'000), b(300'000, std::byte{1});  // b: blocks of one repeated byte
  EXPECT_EQ(stated(encode(a)), 400'000u);
  EXPECT_EQ(stated(skippable(9) + encode(a) + skippable(9) + encode(b)), 700'000u);
  EXPECT_EQ(stated(encode(a) + Data(9)), 400'000u);
  EXPECT_EQ(stated(encode(a) + frame(b, false)), std::nullopt);
  EXPECT_EQ(stated(frame(a, false)), std::nullopt);
  EXPECT_EQ(stated(Data(100)), std::nullopt);
  EXPECT_EQ(stated({}), std::nullopt);
}

TEST(Zstd, RefusesWhatIsNoFrame) {
  Data stored = encode(words(3000));
  stored[0] ^= std::byte{1};
  EXPECT_EQ(fault_of(stored, 3000).fault, DecodeFault::no_frame);
  stored[0] ^= std::byte{1};
  stored[4] |= std::byte{8};
  EXPECT_EQ(fault_of(stored, 3000).fault, DecodeFault::reserved_bit);
  EXPECT_EQ(fault_of(Data(64), 3000).fault, DecodeFault::no_frame);
}

TEST(Zstd, RefusesADictionary) {
  // Magic number, a single segment with a 1-byte dictionary id and a 1-byte size, an empty last raw block.
  Data stored;
  for (const unsigned b : {0x28u, 0xB5u, 0x2Fu, 0xFDu, 0x21u, 0x07u, 0x00u, 0x01u, 0x00u, 0x00u})
    stored.push_back(static_cast<std::byte>(b));
  const DecodeResult result = fault_of(stored, 0);
  EXPECT_EQ(result.fault, DecodeFault::dictionary);
  EXPECT_EQ(result.found, 7u);
}

// A frame of one run of `size` zeros with a given window, without a content size.
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
  EXPECT_EQ(fault_of(run_frame(17 << 3 | 1, 1000), 1000).fault, DecodeFault::window);
  EXPECT_EQ(fault_of(run_frame(0xFF, 1000), 1000).fault, DecodeFault::window);
}

TEST(Zstd, CountsTheSmallerOfWindowAndDemandAgainstTheMemoryLimit) {
  EXPECT_TRUE(decoded(kZstd, run_frame(17 << 3, 1000), 1000, 100, 1000).result.ok());
  const DecodeResult refused = decoded(kZstd, run_frame(17 << 3, 1000), 1000, 100, 999).result;
  EXPECT_EQ(refused.fault, DecodeFault::memory);
  EXPECT_EQ(refused.found, 1000u);
  const Data data = words(5'000'000), stored = frame(data, true, false, 16);
  EXPECT_TRUE(decoded(kZstd, stored, data.size(), 4096, 1 << 16).result.ok());
  EXPECT_EQ(decoded(kZstd, stored, data.size(), 4096, (1 << 16) - 1).result.fault, DecodeFault::memory);
  EXPECT_LE(decoded(kZstd, stored, data.size()).largest, std::size_t{1} << 17);
}

TEST(Zstd, FindsFlippedBitsThroughTheChecksum) {
  const Data data = words(2000);
  Data stored = frame(data, false, true);
  stored.back() ^= std::byte{1};
  EXPECT_EQ(fault_of(stored, data.size()).fault, DecodeFault::corrupt);
}

TEST(Zstd, AnySingleByteMutationGivesAnAnswer) {
  const Data data = words(600);
  for (const Data& good : {encode(data), frame(data, false, true)})
    for (std::size_t i = 0; i < good.size(); ++i)
      for (const unsigned mask : {0x01u, 0x80u, 0xFFu}) {
        Data bad = good;
        bad[i] ^= static_cast<std::byte>(mask);
        const Decoded out = decoded(kZstd, bad, data.size());
        if (out.result.ok()) {
          EXPECT_EQ(out.data.size(), data.size());
        }
      }
}

TEST(Zstd, ManyTinyPartsAreCheap) {
  Data data = words(256), back(256);
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    base::store_le(data.data(), i);
    ASSERT_TRUE(codecs::decode(kZstd, encode(data), back).ok());
    ASSERT_EQ(back, data);
  }
}

// A hostile part of many frames, each with a large window, takes time linear in its bytes.
TEST(Zstd, ManyFramesAreLinear) {
  Data stored;
  for (unsigned i = 0; i < 20'000; ++i) stored = std::move(stored) + run_frame(17 << 3, 1);
  EXPECT_TRUE(decoded(kZstd, stored, 20'000).result.ok());
}

}  // namespace
}  // namespace weighbridge::codecs

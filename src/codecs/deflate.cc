// SPDX-License-Identifier: Apache-2.0
// Deflate (RFC 1951) through zlib, without gzip or zlib headers: method 8 of zip. And zlib's checksum.
#include <zlib.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/checked.h"
#include "codecs/checksum.h"
#include "codecs/coding.h"

namespace weighbridge::codecs {
namespace {

constexpr int kRawWindow = -15;  // negative: no header, 32 KiB
constexpr std::uint64_t kWindow = std::uint64_t{32} << 10;
constexpr std::size_t kBuffer = std::size_t{128} << 10;
constexpr int kMemory = 8;  // zlib's default

Bytef* bytes(std::byte* at) noexcept { return reinterpret_cast<Bytef*>(at); }

class DeflateDecoder final : public Decoder {
 public:
  DeflateDecoder() {
    if (inflateInit2(&stream_, kRawWindow) != Z_OK) throw std::bad_alloc();
    input_.resize(kBuffer);
    output_.resize(kBuffer);
  }
  ~DeflateDecoder() override { inflateEnd(&stream_); }
  DeflateDecoder(const DeflateDecoder&) = delete;
  DeflateDecoder& operator=(const DeflateDecoder&) = delete;

  DecodeResult decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull& pull, const Sink& sink) override {
    if (const std::uint64_t needed = std::min(kWindow, demanded); needed > memory_limit)
      return fault(DecodeFault::memory, 0,
                   "decoding deflate takes " + std::to_string(needed) + " bytes of memory, the limit is " +
                       std::to_string(memory_limit),
                   memory_limit, needed);
    inflateReset(&stream_);
    stream_.avail_in = 0;
    std::uint64_t pulled = 0, made = 0;
    const auto offset = [&] { return pulled - stream_.avail_in; };
    for (;;) {
      if (stream_.avail_in == 0) {
        const std::size_t got = pull(input_);
        if (got == 0) return truncated("stored bytes, inside the deflate data,", offset(), made, demanded);
        pulled += got;
        stream_.next_in = bytes(input_.data());
        stream_.avail_in = static_cast<uInt>(got);
      }
      stream_.next_out = bytes(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      // Z_BUF_ERROR: all input is used and more is needed.
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return fault(
            DecodeFault::corrupt, offset(),
            std::string("the deflate data is corrupt: ") + (stream_.msg ? stream_.msg : "it needs a dictionary"));
      const std::size_t got = output_.size() - stream_.avail_out;
      if (got > demanded - made)
        return fault(
            DecodeFault::too_long, offset(),
            "the deflate data holds more than the " + std::to_string(demanded) + " bytes that its tensor needs",
            demanded, demanded + 1);
      made += got;
      if (got > 0 && !sink(std::span(output_).first(got))) return stopped(offset());
      if (status == Z_STREAM_END) break;
    }
    if (made < demanded)
      return fault(
          DecodeFault::too_short, offset(),
          "the deflate data holds " + std::to_string(made) + " bytes, its tensor needs " + std::to_string(demanded),
          demanded, made);
    if (stream_.avail_in > 0 || pull(input_) > 0)
      return fault(DecodeFault::trailing, offset(), "bytes follow the deflate data");
    return {};
  }

  // zlib's own state is its window and less than 16 KiB.
  std::size_t kept() const noexcept override { return input_.capacity() + output_.capacity() + 2 * kWindow; }

 private:
  z_stream stream_{};
  std::vector<std::byte> input_, output_;
};

// At some levels, zlib's output depends on how its input is split, so the input is always split the same way.
class DeflateEncoder final : public Encoder {
 public:
  DeflateEncoder() = default;
  ~DeflateEncoder() override { deflateEnd(&stream_); }
  DeflateEncoder(const DeflateEncoder&) = delete;
  DeflateEncoder& operator=(const DeflateEncoder&) = delete;

  void begin(std::uint64_t size, int level) override {
    left_.begin(size);
    gathered_.clear();
    gathered_.reserve(kBuffer);
    output_.resize(kBuffer);
    deflateEnd(&stream_);
    stream_ = {};
    if (deflateInit2(&stream_, std::clamp(level, kDeflate.lowest, kDeflate.highest), Z_DEFLATED, kRawWindow, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  void push(std::span<const std::byte> piece, const Sink& sink) override {
    left_.take(piece.size());
    while (!piece.empty()) {
      const auto part = piece.first(std::min(piece.size(), kBuffer - gathered_.size()));
      gathered_.insert(gathered_.end(), part.begin(), part.end());
      piece = piece.subspan(part.size());
      if (gathered_.size() == kBuffer) drive(Z_NO_FLUSH, sink);
    }
  }
  void finish(const Sink& sink) override {
    left_.finish();
    drive(Z_FINISH, sink);
  }

 private:
  void drive(int flush, const Sink& sink) {
    stream_.next_in = bytes(gathered_.data());
    stream_.avail_in = static_cast<uInt>(gathered_.size());
    do {
      stream_.next_out = bytes(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      deflate(&stream_, flush);  // cannot fail with a valid state and room for output
      const std::size_t got = output_.size() - stream_.avail_out;
      if (got > 0) sink(std::span(output_).first(got));
    } while (stream_.avail_out == 0);
    gathered_.clear();
  }

  z_stream stream_{};
  SizeGuard left_;
  std::vector<std::byte> gathered_, output_;
};

}  // namespace

std::unique_ptr<Decoder> make_deflate_decoder() { return std::make_unique<DeflateDecoder>(); }
std::unique_ptr<Encoder> make_deflate_encoder() { return std::make_unique<DeflateEncoder>(); }

// At kMemory, stored blocks cost five bytes per 16 KiB. zlib has this bound for a 32 KiB window; this sum is slightly
// larger, in 64 bits.
std::uint64_t deflate_bound(std::uint64_t size) noexcept {
  const std::uint64_t over = (size >> 12) + (size >> 14) + (size >> 25) + 16;
  return size > UINT64_MAX - over ? 0 : size + over;
}

std::uint32_t adler32(std::span<const std::byte> data, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(
      ::adler32_z(before, reinterpret_cast<const unsigned char*>(data.data()), data.size()));
}

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// The table's rows, the raw codec, and what all codecs share.
#include "codecs/codec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/fail.h"
#include "codecs/coding.h"

namespace weighbridge::codecs {
namespace {

class RawDecoder final : public Decoder {
 public:
  DecodeResult decode(std::uint64_t demanded, std::uint64_t, const Pull& pull, const Sink& sink) override {
    buffer_.resize(kBuffer);
    std::uint64_t made = 0;
    for (;;) {
      const std::size_t got = pull(buffer_);
      if (got == 0) break;
      if (got > demanded - made)
        return fault(DecodeFault::trailing, demanded, "bytes follow the " + std::to_string(demanded) + " needed ones",
                     demanded, made + got);
      made += got;
      if (!sink(std::span(buffer_).first(got))) return stopped(made);
    }
    if (made < demanded) return truncated("stored bytes", made, made, demanded);
    return {};
  }
  std::size_t kept() const noexcept override { return buffer_.capacity(); }

 private:
  static constexpr std::size_t kBuffer = std::size_t{128} << 10;
  std::vector<std::byte> buffer_;
};

class RawEncoder final : public Encoder {
 public:
  void begin(std::uint64_t size, int) override { left_.begin(size); }
  void push(std::span<const std::byte> piece, const Sink& sink) override {
    left_.take(piece.size());
    if (!piece.empty()) sink(piece);
  }
  void finish(const Sink&) override { left_.finish(); }

 private:
  SizeGuard left_;
};

std::uint64_t same_size(std::uint64_t size) noexcept { return size; }

// Same indices as kAll.
constexpr std::size_t kCodecs = 5, kWritten = 4;
std::array<std::unique_ptr<Decoder>, kCodecs>& kept_decoders() {
  thread_local std::array<std::unique_ptr<Decoder>, kCodecs> kept;
  return kept;
}

}  // namespace

const Codec kRaw{.name = "raw",
                 .frames = true,
                 .decoder = [] { return std::unique_ptr<Decoder>(new RawDecoder); },
                 .encoder = [] { return std::unique_ptr<Encoder>(new RawEncoder); },
                 .bound = same_size};
const Codec kZstd{.name = "zstd",
                  .frames = true,
                  .lowest = 1,
                  .level = 3,
                  .highest = 19,
                  .decoder = make_zstd_decoder,
                  .encoder = make_zstd_encoder,
                  .bound = zstd_bound};
const Codec kZstdSeekable{.name = "zstd-seekable",
                          .frames = false,  // one stream; its seek table must be the last frame
                          .lowest = 1,
                          .level = 3,
                          .highest = 19,
                          .decoder = make_zstd_seekable_decoder,
                          .encoder = make_zstd_seekable_encoder,
                          .bound = zstd_seekable_bound};
const Codec kDeflate{.name = "deflate",
                     .frames = false,
                     .lowest = 1,
                     .level = 6,
                     .highest = 9,
                     .decoder = make_deflate_decoder,
                     .encoder = make_deflate_encoder,
                     .bound = deflate_bound};
const Codec kLzf{.name = "lzf", .decoder = make_lzf_decoder};

namespace {
constexpr std::array<const Codec*, kCodecs> kAll = {&kRaw, &kZstd, &kDeflate, &kZstdSeekable, &kLzf};

std::unique_ptr<Decoder>& kept_decoder(const Codec& codec) {
  return kept_decoders()[static_cast<std::size_t>(std::ranges::find(kAll, &codec) - kAll.begin())];
}
}  // namespace

std::span<const Codec* const> all() noexcept { return std::span(kAll).first(kWritten); }

const Codec* find(std::string_view name) noexcept {
  const auto known = all();
  const auto at = std::ranges::find(known, name, &Codec::name);
  return at == known.end() ? nullptr : *at;
}

LentDecoder::LentDecoder(const Codec& codec) : codec_(codec), decoder_(std::move(kept_decoder(codec))) {
  if (!decoder_) decoder_ = codec.decoder();
}
LentDecoder::~LentDecoder() {
  if (decoder_->kept() <= kMaxKept) kept_decoder(codec_) = std::move(decoder_);
}
std::size_t LentDecoder::kept_here() noexcept {
  std::size_t sum = 0;
  for (const auto& each : kept_decoders()) sum += each ? each->kept() : 0;
  return sum;
}

std::vector<std::byte> encode(const Codec& codec, std::span<const std::byte> data) {
  return encode(codec, data, codec.level);
}

std::vector<std::byte> encode(const Codec& codec, std::span<const std::byte> data, int level) {
  std::vector<std::byte> out;
  const Encoder::Sink append = [&](std::span<const std::byte> piece) {
    out.insert(out.end(), piece.begin(), piece.end());
  };
  const auto encoder = codec.encoder();
  encoder->begin(data.size(), level);
  encoder->push(data, append);
  encoder->finish(append);
  return out;
}

DecodeResult decode(const Codec& codec, std::span<const std::byte> stored, std::span<std::byte> out) {
  const LentDecoder decoder(codec);
  std::size_t taken = 0, made = 0;
  return decoder->decode(
      out.size(), UINT64_MAX,
      [&](std::span<std::byte> room) {
        const std::size_t n = std::min(room.size(), stored.size() - taken);
        std::ranges::copy(stored.subspan(taken, n), room.begin());
        taken += n;
        return n;
      },
      [&](std::span<const std::byte> piece) {
        std::ranges::copy(piece, out.begin() + static_cast<std::ptrdiff_t>(made));
        made += piece.size();
        return true;
      });
}

void SizeGuard::take(std::size_t size) {
  if (size > left_) base::misuse("encode", "more bytes were pushed than the encoder was begun for");
  left_ -= size;
}

void SizeGuard::finish() const {
  if (left_ > 0) base::misuse("encode", "fewer bytes were pushed than the encoder was begun for");
}

DecodeResult fault(DecodeFault kind, std::uint64_t offset, std::string sentence, std::uint64_t expected,
                   std::uint64_t found) {
  return {kind, offset, expected, found, std::move(sentence)};
}

DecodeResult truncated(std::string_view what, std::uint64_t offset, std::uint64_t made, std::uint64_t demanded) {
  return fault(DecodeFault::truncated, offset,
               "the " + std::string(what) + " end after " + std::to_string(made) + " of " + std::to_string(demanded) +
                   " decoded bytes",
               demanded, made);
}

DecodeResult stopped(std::uint64_t offset) { return fault(DecodeFault::stopped, offset, "the reader stopped"); }

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Encodes bytes as one zstd frame that states its content size and has no checksum, or as seekable zstd. In buffered
// mode, libzstd's output depends on how its input is split, so the input is always split the same way: up to kWhole
// bytes in one call, which is faster, and more in pieces of kPiece, in constant memory. (libzstd's workers would change
// the output, and Debian's static libzstd is built without them.)
#include <zstd.h>

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "codecs/coding.h"
#include "codecs/zstd.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::uint64_t kWhole = std::uint64_t{8} << 20;

std::size_t checked(std::size_t code) {
  if (ZSTD_isError(code) == 0) return code;
  // Parameters are in range and buffers large enough, so it can fail only for lack of memory.
  throw std::bad_alloc();
}

// libzstd's state.
class Compressor {
 public:
  // Resets the earlier settings.
  void begin(const Codec& codec, int level) {
    if (!context_) throw std::bad_alloc();
    checked(ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_and_parameters));
    checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel,
                                   std::clamp(level, codec.lowest, codec.highest)));
  }
  ZSTD_CCtx* get() const noexcept { return context_.get(); }

  // One frame, valid until the next call.
  std::span<const std::byte> frame(std::span<const std::byte> content) {
    output_.resize(ZSTD_compressBound(content.size()));
    const std::size_t size =
        checked(ZSTD_compress2(context_.get(), output_.data(), output_.size(), content.data(), content.size()));
    return std::span(output_).first(size);
  }
  // Passes content of a frame to libzstd.
  void drive(std::span<const std::byte> content, ZSTD_EndDirective directive, const Encoder::Sink& sink) {
    ZSTD_inBuffer in{content.data(), content.size(), 0};
    output_.resize(ZSTD_CStreamOutSize());
    for (;;) {
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      const std::size_t left = checked(ZSTD_compressStream2(context_.get(), &out, &in, directive));
      if (out.pos > 0) sink(std::span(output_).first(out.pos));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) break;
    }
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* c) const noexcept { ZSTD_freeCCtx(c); }
  };

  std::unique_ptr<ZSTD_CCtx, Free> context_{ZSTD_createCCtx()};
  std::vector<std::byte> output_;
};

class ZstdEncoder final : public Encoder {
 public:
  void begin(std::uint64_t size, int level) override {
    size_ = size;
    left_.begin(size);
    gathered_.clear();
    compressor_.begin(kZstd, level);
    checked(ZSTD_CCtx_setPledgedSrcSize(compressor_.get(), size));
  }

  void push(std::span<const std::byte> piece, const Sink& sink) override {
    left_.take(piece.size());
    const auto maximum = base::to_size(at_once() ? size_ : kPiece);
    gathered_.reserve(maximum);
    while (!piece.empty()) {
      const auto part = piece.first(std::min(piece.size(), maximum - gathered_.size()));
      gathered_.insert(gathered_.end(), part.begin(), part.end());
      piece = piece.subspan(part.size());
      if (gathered_.size() == maximum && !at_once()) drive(ZSTD_e_continue, sink);
    }
  }

  void finish(const Sink& sink) override {
    left_.finish();
    if (at_once())
      sink(compressor_.frame(gathered_));
    else
      drive(ZSTD_e_end, sink);
  }

 private:
  bool at_once() const noexcept { return size_ <= kWhole; }
  void drive(ZSTD_EndDirective directive, const Sink& sink) {
    compressor_.drive(gathered_, directive, sink);
    gathered_.clear();
  }

  Compressor compressor_;
  std::uint64_t size_ = 0;
  SizeGuard left_;
  std::vector<std::byte> gathered_;  // the whole part, or the next piece
};

// Frames of kFrameContent bytes, each with its content size and checksum, and the table of them.
class SeekableEncoder final : public Encoder {
 public:
  void begin(std::uint64_t size, int level) override {
    left_.begin(size);
    gathered_.clear();
    gathered_.reserve(base::to_size(std::min(size, kFrameContent)));
    frames_.clear();
    compressor_.begin(kZstdSeekable, level);
    checked(ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_checksumFlag, 1));
  }

  void push(std::span<const std::byte> piece, const Sink& sink) override {
    left_.take(piece.size());
    while (!piece.empty()) {
      const auto part = piece.first(std::min(piece.size(), base::to_size(kFrameContent) - gathered_.size()));
      gathered_.insert(gathered_.end(), part.begin(), part.end());
      piece = piece.subspan(part.size());
      if (gathered_.size() == kFrameContent) frame(sink);
    }
  }

  void finish(const Sink& sink) override {
    left_.finish();
    if (!gathered_.empty()) frame(sink);
    sink(frames_.table());
  }

 private:
  void frame(const Sink& sink) {
    const auto made = compressor_.frame(gathered_);
    frames_.add(made.size(), gathered_.size());
    gathered_.clear();
    sink(made);
  }

  Compressor compressor_;
  SizeGuard left_;
  SeekFrames frames_;
  std::vector<std::byte> gathered_;
};

}  // namespace

std::unique_ptr<Encoder> make_zstd_encoder() { return std::make_unique<ZstdEncoder>(); }
std::unique_ptr<Encoder> make_zstd_seekable_encoder() { return std::make_unique<SeekableEncoder>(); }

std::uint64_t zstd_bound(std::uint64_t size) noexcept {
  if (size > SIZE_MAX) return 0;
  const std::size_t bound = ZSTD_compressBound(base::to_size(size));
  return ZSTD_isError(bound) != 0 || bound < size ? 0 : bound;
}

}  // namespace weighbridge::codecs

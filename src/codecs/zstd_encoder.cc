// SPDX-License-Identifier: Apache-2.0
// Encodes bytes as one zstd frame that states its content size and has no checksum. In buffered mode, libzstd's output
// depends on how its input is split, so the input is always split the same way: up to kWhole bytes in one call, which
// is faster, and more in pieces of kPiece, in constant memory. (libzstd's workers would change the output, and Debian's
// static libzstd is built without them.)
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

class ZstdEncoder final : public Encoder {
 public:
  void begin(std::uint64_t size, int level) override {
    if (!context_) throw std::bad_alloc();
    size_ = size;
    left_.begin(size);
    gathered_.clear();
    checked(ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_and_parameters));
    checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel,
                                   std::clamp(level, kZstd.lowest, kZstd.highest)));
    checked(ZSTD_CCtx_setPledgedSrcSize(context_.get(), size));
  }

  void push(std::span<const std::byte> piece, const Sink& sink) override {
    left_.take(piece.size());
    const auto most = base::to_size(at_once() ? size_ : kPiece);
    gathered_.reserve(most);
    while (!piece.empty()) {
      const auto part = piece.first(std::min(piece.size(), most - gathered_.size()));
      gathered_.insert(gathered_.end(), part.begin(), part.end());
      piece = piece.subspan(part.size());
      if (gathered_.size() == most && !at_once()) drive(ZSTD_e_continue, sink);
    }
  }

  void finish(const Sink& sink) override {
    left_.finish();
    if (!at_once()) return drive(ZSTD_e_end, sink);
    output_.resize(ZSTD_compressBound(gathered_.size()));
    const std::size_t size =
        checked(ZSTD_compress2(context_.get(), output_.data(), output_.size(), gathered_.data(), gathered_.size()));
    sink(std::span(output_).first(size));
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* c) const noexcept { ZSTD_freeCCtx(c); }
  };
  bool at_once() const noexcept { return size_ <= kWhole; }

  // Passes the gathered bytes to libzstd.
  void drive(ZSTD_EndDirective directive, const Sink& sink) {
    ZSTD_inBuffer in{gathered_.data(), gathered_.size(), 0};
    output_.resize(ZSTD_CStreamOutSize());
    for (;;) {
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      const std::size_t left = checked(ZSTD_compressStream2(context_.get(), &out, &in, directive));
      if (out.pos > 0) sink(std::span(output_).first(out.pos));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) break;
    }
    gathered_.clear();
  }

  std::unique_ptr<ZSTD_CCtx, Free> context_{ZSTD_createCCtx()};
  std::uint64_t size_ = 0;
  Exactly left_;
  std::vector<std::byte> gathered_, output_;  // gathered: the whole part, or the next piece
};

}  // namespace

std::unique_ptr<Encoder> make_zstd_encoder() { return std::make_unique<ZstdEncoder>(); }

std::uint64_t zstd_bound(std::uint64_t size) noexcept {
  if (size > SIZE_MAX) return 0;
  const std::size_t bound = ZSTD_compressBound(base::to_size(size));
  return ZSTD_isError(bound) != 0 || bound < size ? 0 : bound;
}

}  // namespace weighbridge::codecs

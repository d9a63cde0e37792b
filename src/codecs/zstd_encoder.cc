// SPDX-License-Identifier: Apache-2.0
// ZstdEncoder: deterministic frames. libzstd's buffered mode finds other matches when its input is sliced otherwise, so
// that it only ever sees one slicing: up to kWhole bytes in one call, more in pieces of kPiece.
#include <zstd.h>

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/zstd.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::size_t checked(std::size_t code) {
  if (ZSTD_isError(code) == 0) return code;
  // Every parameter is in range and every buffer large enough, so that only memory can be short.
  throw std::bad_alloc();
}

}  // namespace

struct ZstdEncoder::State {
  struct Free {
    void operator()(ZSTD_CCtx* c) const noexcept { ZSTD_freeCCtx(c); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context{ZSTD_createCCtx()};
  std::uint64_t size = 0, taken = 0;
  std::vector<std::byte> gathered, output;  // gathered: the whole part, or the next piece

  bool at_once() const noexcept { return size <= kWhole; }
  void set(ZSTD_cParameter what, int value) { checked(ZSTD_CCtx_setParameter(context.get(), what, value)); }

  // Gives what was gathered to libzstd.
  void drive(ZSTD_EndDirective directive, const Sink& sink) {
    ZSTD_inBuffer in{gathered.data(), gathered.size(), 0};
    output.resize(ZSTD_CStreamOutSize());
    for (;;) {
      ZSTD_outBuffer out{output.data(), output.size(), 0};
      const std::size_t left = checked(ZSTD_compressStream2(context.get(), &out, &in, directive));
      if (out.pos > 0) sink(std::span(output).first(out.pos));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) break;
    }
    gathered.clear();
  }
};

ZstdEncoder::ZstdEncoder() : state_(std::make_unique<State>()) {}
ZstdEncoder::~ZstdEncoder() = default;
ZstdEncoder::ZstdEncoder(ZstdEncoder&&) noexcept = default;
ZstdEncoder& ZstdEncoder::operator=(ZstdEncoder&&) noexcept = default;

std::uint64_t zstd_compress_bound(std::uint64_t size) noexcept {
  if (size > SIZE_MAX) return 0;
  const std::size_t bound = ZSTD_compressBound(base::to_size(size));
  return ZSTD_isError(bound) != 0 || bound < size ? 0 : bound;
}

void ZstdEncoder::begin(std::uint64_t size, int level) {
  State& s = *state_;
  if (!s.context) throw std::bad_alloc();
  s.size = size;
  s.taken = 0;
  s.gathered.clear();
  checked(ZSTD_CCtx_reset(s.context.get(), ZSTD_reset_session_and_parameters));
  s.set(ZSTD_c_compressionLevel, std::clamp(level, ZSTD_minCLevel(), ZSTD_maxCLevel()));
  checked(ZSTD_CCtx_setPledgedSrcSize(s.context.get(), size));
}

void ZstdEncoder::push(std::span<const std::byte> piece, const Sink& sink) {
  State& s = *state_;
  if (piece.size() > s.size - s.taken)
    base::misuse("encode", "more bytes were pushed than the zstd frame was begun for");
  s.taken += piece.size();
  const auto most = base::to_size(s.at_once() ? s.size : kPiece);
  s.gathered.reserve(most);
  while (!piece.empty()) {
    const auto part = piece.first(std::min(piece.size(), most - s.gathered.size()));
    s.gathered.insert(s.gathered.end(), part.begin(), part.end());
    piece = piece.subspan(part.size());
    if (s.gathered.size() == most && !s.at_once()) s.drive(ZSTD_e_continue, sink);
  }
}

void ZstdEncoder::finish(const Sink& sink) {
  State& s = *state_;
  if (s.taken != s.size) base::misuse("encode", "fewer bytes were pushed than the zstd frame was begun for");
  if (!s.at_once()) return s.drive(ZSTD_e_end, sink);
  s.output.resize(ZSTD_compressBound(s.gathered.size()));
  const std::size_t size =
      checked(ZSTD_compress2(s.context.get(), s.output.data(), s.output.size(), s.gathered.data(), s.gathered.size()));
  sink(std::span(s.output).first(size));
}

void ZstdEncoder::encode(std::span<const std::byte> data, std::vector<std::byte>& out, int level) {
  begin(data.size(), level);
  State& s = *state_;
  if (s.at_once()) {  // straight from the caller's memory into the caller's buffer
    s.taken = s.size;
    out.resize(ZSTD_compressBound(data.size()));
    out.resize(checked(ZSTD_compress2(s.context.get(), out.data(), out.size(), data.data(), data.size())));
    return;
  }
  out.clear();
  const Sink append = [&](std::span<const std::byte> piece) { out.insert(out.end(), piece.begin(), piece.end()); };
  push(data, append);
  finish(append);
}

}  // namespace weighbridge::codecs

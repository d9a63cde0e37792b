// SPDX-License-Identifier: Apache-2.0
// ZstdDecoder: the frame header by our own hand, since it decides what may be allocated; the blocks by libzstd.
#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_d_stableOutBuffer
#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/zstd.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kMaxHeader = 18;  // RFC 8878, 3.1.1.1, with the magic number
constexpr std::uint32_t kMagic = 0xFD2FB528u, kSkippable = 0x184D2A50u, kSkippableMask = 0xFFFFFFF0u;

struct FrameHeader {
  std::uint64_t window = 0;
  std::optional<std::uint64_t> content_size;
};

ZstdResult fault(ZstdFault kind, std::uint64_t offset, std::string sentence, std::uint64_t expected = 0,
                 std::uint64_t found = 0) {
  return {kind, offset, expected, found, std::move(sentence)};
}

ZstdResult truncated(std::uint64_t offset, std::uint64_t made, std::uint64_t demanded) {
  return fault(ZstdFault::truncated, offset,
               fmt::format("the stored bytes end inside the zstd frame, after {} of {} decoded bytes", made, demanded),
               demanded, made);
}

ZstdResult too_long(std::uint64_t offset, std::uint64_t demanded) {
  return fault(ZstdFault::too_long, offset,
               fmt::format("the zstd frame holds more than the {} bytes that its tensor needs", demanded), demanded,
               demanded + 1);
}

// The header in `head`, which holds the first kMaxHeader stored bytes or all there are.
ZstdResult parse_header(std::span<const std::byte> head, std::uint64_t demanded, FrameHeader& out) {
  if (head.size() < 4) return truncated(head.size(), 0, demanded);
  const auto magic = base::load_le<std::uint32_t>(head.data());
  if ((magic & kSkippableMask) == kSkippable)
    return fault(ZstdFault::skippable_frame, 0, "the stored bytes begin with a skippable zstd frame");
  if (magic != kMagic)
    return fault(ZstdFault::no_frame, 0,
                 fmt::format("the stored bytes begin with 0x{:08x}, a zstd frame begins with 0x{:08x}", magic, kMagic),
                 kMagic, magic);
  if (head.size() < 5) return truncated(head.size(), 0, demanded);
  const auto descriptor = std::to_integer<unsigned>(head[4]);
  if ((descriptor & 0x08) != 0) return fault(ZstdFault::reserved_bit, 4, "the zstd frame header sets its reserved bit");
  const bool single_segment = (descriptor & 0x20) != 0;
  constexpr std::size_t kDictionaryBytes[4] = {0, 1, 2, 4};
  const std::size_t dictionary_bytes = kDictionaryBytes[descriptor & 3];
  const unsigned size_code = descriptor >> 6;
  const std::size_t size_bytes = size_code == 0 ? (single_segment ? 1u : 0u) : std::size_t{1} << size_code;
  const std::size_t window_bytes = single_segment ? 0 : 1;
  if (head.size() < 5 + window_bytes + dictionary_bytes + size_bytes) return truncated(head.size(), 0, demanded);

  std::size_t at = 5;
  if (!single_segment) {
    const auto code = std::to_integer<unsigned>(head[at]);
    const std::uint64_t base = std::uint64_t{1} << (10 + (code >> 3));
    out.window = base + base / 8 * (code & 7);
    ++at;
  }
  const auto number = [&](std::size_t from, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(head[from + i]);
    return value;
  };
  if (const std::uint64_t id = number(at, dictionary_bytes); id != 0)
    return fault(ZstdFault::dictionary, at, fmt::format("the zstd frame needs dictionary {}", id), 0, id);
  at += dictionary_bytes;
  if (size_bytes > 0) {
    out.content_size = number(at, size_bytes) + (size_bytes == 2 ? 256 : 0);
    if (*out.content_size != demanded)
      return fault(ZstdFault::content_size, at,
                   fmt::format("the zstd frame states {} bytes, its tensor needs {}", *out.content_size, demanded),
                   demanded, *out.content_size);
    if (single_segment) out.window = *out.content_size;
  }
  return {};
}

ZstdResult check_window(const FrameHeader& header) {
  if (header.window <= kZstdMaxWindow) return {};
  return fault(
      ZstdFault::window, 5,
      fmt::format("the zstd frame asks for a window of {} bytes, at most {} are taken", header.window, kZstdMaxWindow),
      kZstdMaxWindow, header.window);
}

ZstdResult trailing(std::uint64_t offset, std::span<const std::byte> rest) {
  const std::uint32_t magic = rest.size() >= 4 ? base::load_le<std::uint32_t>(rest.data()) : 0;
  const char* what = magic == kMagic                          ? "a second zstd frame follows the first"
                     : (magic & kSkippableMask) == kSkippable ? "a skippable zstd frame follows the first"
                                                              : "bytes follow the zstd frame";
  return fault(ZstdFault::trailing, offset, what);
}

}  // namespace

struct ZstdDecoder::State {
  struct Free {
    void operator()(ZSTD_DCtx* c) const noexcept { ZSTD_freeDCtx(c); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
  std::vector<std::byte> input, output;

  // Sets the context up for a new frame. With `direct`, blocks are decoded into the one output buffer and libzstd keeps
  // no window.
  void begin(bool direct) {
    if (!context) throw std::bad_alloc();
    ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
    ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27);
    ZSTD_DCtx_setParameter(context.get(), ZSTD_d_stableOutBuffer, direct ? 1 : 0);
  }
};

ZstdDecoder::ZstdDecoder() : state_(std::make_unique<State>()) {}
ZstdDecoder::~ZstdDecoder() = default;
ZstdDecoder::ZstdDecoder(ZstdDecoder&&) noexcept = default;
ZstdDecoder& ZstdDecoder::operator=(ZstdDecoder&&) noexcept = default;

ZstdResult ZstdDecoder::decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull& pull, const Sink& sink) {
  State& s = *state_;
  s.input.resize(ZSTD_DStreamInSize());
  // As many bytes as the source has, up to a whole buffer: a source may give crumbs.
  const auto fill = [&](std::size_t have, std::size_t want) {
    while (have < want) {
      const std::size_t got = pull(std::span(s.input).subspan(have));
      if (got == 0) break;
      have += got;
    }
    return have;
  };
  ZSTD_inBuffer in{s.input.data(), fill(0, kMaxHeader), 0};
  FrameHeader header;
  if (ZstdResult result = parse_header(std::span(s.input).first(in.size), demanded, header); !result.ok())
    return result;
  if (ZstdResult result = check_window(header); !result.ok()) return result;
  const std::uint64_t needed = std::min(header.window, demanded);
  if (needed > memory_limit)
    return fault(ZstdFault::memory, 5,
                 fmt::format("decoding the zstd frame takes {} bytes of memory, the limit is {}", needed, memory_limit),
                 memory_limit, needed);

  // A result no larger than its window is its own window: decoded straight into one buffer of exactly that size.
  const bool direct = demanded <= header.window;
  s.begin(direct);
  s.output.resize(direct ? std::max<std::size_t>(base::to_size(demanded), 1) : ZSTD_DStreamOutSize());
  s.output.shrink_to_fit();
  ZSTD_outBuffer out{s.output.data(), direct ? base::to_size(demanded) : s.output.size(), 0};
  std::uint64_t taken = 0, made = 0;  // stored bytes before the input buffer, decoded bytes before the output buffer
  for (;;) {
    const std::size_t in_before = in.pos, out_before = out.pos;
    const std::size_t left = ZSTD_decompressStream(s.context.get(), &out, &in);
    const std::uint64_t offset = taken + in.pos;
    if (ZSTD_isError(left) != 0) {
      if (ZSTD_getErrorCode(left) == ZSTD_error_dstSize_tooSmall) return too_long(offset, demanded);
      if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) throw std::bad_alloc();
      return fault(ZstdFault::corrupt, offset, fmt::format("the zstd frame is corrupt: {}", ZSTD_getErrorName(left)));
    }
    if (out.pos > demanded - made) return too_long(offset, demanded);
    const bool ended = left == 0;
    if (out.pos > 0 && !direct) {
      made += out.pos;
      if (!sink(std::span(s.output).first(out.pos))) return fault(ZstdFault::stopped, offset, "the reader stopped");
      out.pos = 0;
    }
    if (ended) break;
    const bool moved = in.pos != in_before || out.pos != out_before || !direct;
    if (in.pos == in.size) {
      taken += in.size;
      in.pos = 0;
      in.size = fill(0, 1);
      if (in.size == 0) return truncated(taken, made + out.pos, demanded);
    } else if (!moved) {
      return too_long(offset, demanded);  // a full output buffer, and the frame goes on
    }
  }
  const std::uint64_t end = taken + in.pos, total = made + out.pos;
  if (total != demanded)
    return fault(ZstdFault::too_short, end,
                 fmt::format("the zstd frame holds {} bytes, its tensor needs {}", total, demanded), demanded, total);
  std::span<const std::byte> rest = std::span(s.input).subspan(in.pos, in.size - in.pos);
  if (rest.size() < 4) {
    std::memmove(s.input.data(), rest.data(), rest.size());
    rest = std::span(s.input).first(fill(rest.size(), 4));
  }
  if (!rest.empty()) return trailing(end, rest);
  if (direct && demanded > 0 && !sink(std::span(s.output).first(base::to_size(demanded))))
    return fault(ZstdFault::stopped, end, "the reader stopped");
  return {};
}

ZstdResult ZstdDecoder::decode(std::span<const std::byte> stored, std::span<std::byte> target) {
  FrameHeader header;
  if (ZstdResult result = parse_header(stored.first(std::min(stored.size(), kMaxHeader)), target.size(), header);
      !result.ok())
    return result;
  if (ZstdResult result = check_window(header); !result.ok()) return result;
  state_->begin(true);
  std::byte nothing{};
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  ZSTD_outBuffer out{target.empty() ? &nothing : target.data(), target.size(), 0};
  for (;;) {
    const std::size_t in_before = in.pos, out_before = out.pos;
    const std::size_t left = ZSTD_decompressStream(state_->context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) {
      if (ZSTD_getErrorCode(left) == ZSTD_error_dstSize_tooSmall) return too_long(in.pos, target.size());
      if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) throw std::bad_alloc();
      return fault(ZstdFault::corrupt, in.pos, fmt::format("the zstd frame is corrupt: {}", ZSTD_getErrorName(left)));
    }
    if (left == 0) break;
    if (in.pos == in_before && out.pos == out_before)
      return in.pos == in.size ? truncated(in.pos, out.pos, target.size()) : too_long(in.pos, target.size());
  }
  if (out.pos != target.size())
    return fault(ZstdFault::too_short, in.pos,
                 fmt::format("the zstd frame holds {} bytes, its tensor needs {}", out.pos, target.size()),
                 target.size(), out.pos);
  if (in.pos < in.size) return trailing(in.pos, stored.subspan(in.pos));
  return {};
}

}  // namespace weighbridge::codecs

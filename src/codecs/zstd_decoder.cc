// SPDX-License-Identifier: Apache-2.0
// Decodes zstd frames (RFC 8878). Frame headers are parsed here, because they decide what may be allocated; libzstd
// decodes the blocks.
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
#include "codecs/coding.h"
#include "codecs/zstd.h"

namespace weighbridge::codecs {
namespace {

using Pull = Decoder::Pull;
using Sink = Decoder::Sink;

constexpr std::size_t kMaxHeader = 18;  // RFC 8878, 3.1.1.1, with the magic number
constexpr std::uint32_t kMagic = 0xFD2FB528u, kSkippable = 0x184D2A50u, kSkippableMask = 0xFFFFFFF0u;

struct FrameHeader {
  std::uint64_t window = 0;
  std::optional<std::uint64_t> content_size;
  std::size_t length = 0;
  bool checksum = false;
};

std::uint32_t magic_of(std::span<const std::byte> head) noexcept {
  return head.size() < 4 ? 0 : base::load_le<std::uint32_t>(head.data());
}
bool is_skippable(std::span<const std::byte> head) noexcept { return (magic_of(head) & kSkippableMask) == kSkippable; }

// Parses the header in `head`, which has kMaxHeader bytes or all that remain. `left` is the maximum content of the
// frame. Offsets count from the frame.
DecodeResult parse_header(std::span<const std::byte> head, std::uint64_t left, FrameHeader& out) {
  const auto cut = [&] { return truncated("stored bytes, inside a zstd frame header,", head.size(), 0, left); };
  if (head.size() < 4) return cut();
  const std::uint32_t magic = magic_of(head);
  if (magic != kMagic)
    return fault(DecodeFault::no_frame, 0,
                 fmt::format("the stored bytes begin with 0x{:08x}, a zstd frame begins with 0x{:08x}", magic, kMagic),
                 kMagic, magic);
  if (head.size() < 5) return cut();
  const auto descriptor = std::to_integer<unsigned>(head[4]);
  if ((descriptor & 0x08) != 0)
    return fault(DecodeFault::reserved_bit, 4, "the zstd frame header sets its reserved bit");
  const bool single_segment = (descriptor & 0x20) != 0;
  constexpr std::size_t kDictionaryBytes[4] = {0, 1, 2, 4};
  const std::size_t dictionary_bytes = kDictionaryBytes[descriptor & 3];
  const unsigned size_code = descriptor >> 6;
  const std::size_t size_bytes = size_code == 0 ? (single_segment ? 1u : 0u) : std::size_t{1} << size_code;
  const std::size_t window_bytes = single_segment ? 0 : 1;
  if (head.size() < 5 + window_bytes + dictionary_bytes + size_bytes) return cut();

  out.checksum = (descriptor & 0x04) != 0;
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
    return fault(DecodeFault::dictionary, at, fmt::format("the zstd frame needs dictionary {}", id), 0, id);
  at += dictionary_bytes;
  if (size_bytes > 0) {
    out.content_size = number(at, size_bytes) + (size_bytes == 2 ? 256 : 0);
    if (*out.content_size > left)
      return fault(DecodeFault::content_size, at,
                   fmt::format("the zstd frame states {} bytes, its tensor needs {}", *out.content_size, left), left,
                   *out.content_size);
    if (single_segment) out.window = *out.content_size;
  }
  out.length = at + size_bytes;
  return {};
}

DecodeResult check_window(const FrameHeader& header) {
  if (header.window <= kZstdMaxWindow) return {};
  return fault(
      DecodeFault::window, 5,
      fmt::format("the zstd frame asks for a window of {} bytes, at most {} are taken", header.window, kZstdMaxWindow),
      kZstdMaxWindow, header.window);
}

// The stored bytes, one buffer at a time.
class Input {
 public:
  explicit Input(std::vector<std::byte>& buffer) : buffer_(buffer) { buffer_.resize(ZSTD_DStreamInSize()); }

  void begin(const Pull& pull) {
    pull_ = &pull;
    in_ = {buffer_.data(), 0, 0};
    before_ = 0;
  }
  std::uint64_t offset() const noexcept { return before_ + in_.pos; }
  ZSTD_inBuffer& buffer() noexcept { return in_; }
  bool used_up() const noexcept { return in_.pos == in_.size; }

  // The next `size` bytes, or all that remain; a source may return small pieces.
  std::span<const std::byte> peek(std::size_t size) {
    if (in_.size - in_.pos < size) {
      std::memmove(buffer_.data(), buffer_.data() + in_.pos, in_.size - in_.pos);
      before_ += in_.pos;
      in_.size -= in_.pos;
      in_.pos = 0;
      while (in_.size < size) {
        const std::size_t got = (*pull_)(std::span(buffer_).subspan(in_.size));
        if (got == 0) break;
        in_.size += got;
      }
    }
    return std::span<const std::byte>(buffer_).subspan(in_.pos, std::min(size, in_.size - in_.pos));
  }
  // False if the bytes end first.
  bool skip(std::uint64_t size) {
    while (size > 0) {
      if (peek(1).empty()) return false;
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, in_.size - in_.pos));
      in_.pos += n;
      size -= n;
    }
    return true;
  }

 private:
  std::vector<std::byte>& buffer_;
  const Pull* pull_ = nullptr;
  ZSTD_inBuffer in_{};
  std::uint64_t before_ = 0;  // stored bytes before the buffer
};

class ZstdDecoder final : public Decoder {
 public:
  // `seekable`: the frames keep the rules of codecs/zstd.h, and the table ends the stream.
  explicit ZstdDecoder(bool seekable = false) : seekable_(seekable) {}

  DecodeResult decode(std::uint64_t demanded, std::uint64_t memory_limit, const Pull& pull, const Sink& sink) override {
    input_.begin(pull);
    // Do not keep a large buffer of an earlier part for small ones.
    if (output_.size() > std::max<std::uint64_t>(demanded, ZSTD_DStreamOutSize()))
      std::vector<std::byte>().swap(output_);
    std::uint64_t made = 0;
    frames_.clear();
    for (bool first = true;; first = false) {
      const auto head = input_.peek(kMaxHeader);
      if (head.empty() && !first) break;
      const std::uint64_t begin = input_.offset();
      if (seekable_ && magic_of(head) == kSeekTable) return end_seekable(demanded, made);
      if (is_skippable(head) && !seekable_) {
        if (head.size() < 8 || !input_.skip(std::uint64_t{8} + base::load_le<std::uint32_t>(head.data() + 4)))
          return truncated("stored bytes, inside a skippable zstd frame,", input_.offset(), made, demanded);
        continue;
      }
      if (!first && magic_of(head) != kMagic) return fault(DecodeFault::trailing, begin, "bytes follow the zstd frame");
      FrameHeader header;
      DecodeResult result = parse_header(head, demanded - made, header);
      if (result.ok()) result = check_window(header);
      if (!result.ok()) {
        result.offset += begin;
        return result;
      }
      if (const std::uint64_t needed = std::min(header.window, demanded - made); needed > memory_limit)
        return fault(
            DecodeFault::memory, begin + 5,
            fmt::format("decoding the zstd frame takes {} bytes of memory, the limit is {}", needed, memory_limit),
            memory_limit, needed);
      if (seekable_) {
        result = seekable_frame(header, begin, demanded, memory_limit, made, sink);
      } else {
        result = frame(header, demanded, made, sink);
      }
      if (!result.ok()) return result;
    }
    if (seekable_)
      return fault(DecodeFault::truncated, input_.offset(), "the stored bytes end without the table of zstd frames");
    if (made != demanded)
      return fault(DecodeFault::too_short, input_.offset(),
                   fmt::format("the zstd frame holds {} bytes, its tensor needs {}", made, demanded), demanded, made);
    return {};
  }

  std::size_t kept() const noexcept override {
    return ZSTD_sizeof_DCtx(context_.get()) + in_buffer_.capacity() + output_.capacity() +
           base::to_size(frames_.memory());
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* c) const noexcept { ZSTD_freeDCtx(c); }
  };

  // Sets up the context for a new frame. With `direct`, blocks are decoded into a single output buffer, and libzstd
  // keeps no window.
  void set_up(bool direct) {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_and_parameters);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 27);
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_stableOutBuffer, direct ? 1 : 0);
  }

  static DecodeResult too_long(std::uint64_t offset, std::uint64_t demanded) {
    return fault(DecodeFault::too_long, offset,
                 fmt::format("the zstd frame holds more than the {} bytes that its tensor needs", demanded), demanded,
                 demanded + 1);
  }

  static DecodeResult irregular(std::uint64_t offset, std::string sentence) {
    return fault(DecodeFault::corrupt, offset, std::move(sentence));
  }

  DecodeResult seekable_frame(const FrameHeader& header, std::uint64_t begin, std::uint64_t demanded,
                              std::uint64_t memory_limit, std::uint64_t& made, const Sink& sink) {
    constexpr std::string_view kLarge = "a frame of seekable zstd holds more than 16 MiB";
    if (!header.checksum) return irregular(begin, "a frame of seekable zstd has no checksum");
    if (header.content_size.value_or(0) > kMaxInFrame) return irregular(begin, std::string(kLarge));
    const std::uint64_t before = made, maximum = std::min(demanded, made + kMaxInFrame);
    DecodeResult result = frame(header, maximum, made, sink);
    if (result.fault == DecodeFault::too_long && maximum < demanded) return irregular(begin, std::string(kLarge));
    if (!result.ok()) return result;
    if (frames_.memory() > memory_limit)
      return fault(DecodeFault::memory, begin, "the table of zstd frames exceeds the memory limit", memory_limit,
                   frames_.memory());
    if (!frames_.add(input_.offset() - begin, made - before))
      return irregular(begin, "the frames of seekable zstd do not have equal content");
    return {};
  }

  // Compares the table at the input's position, which must end the stored bytes, with the frames before it.
  DecodeResult end_seekable(std::uint64_t demanded, std::uint64_t made) {
    const std::uint64_t begin = input_.offset();
    const auto word = [](std::span<const std::byte> bytes, std::size_t at) {
      return base::load_le<std::uint32_t>(bytes.data() + at);
    };
    const auto cut = [&] { return truncated("stored bytes, inside the table of frames,", begin, made, demanded); };
    const auto wrong = [&](const char* what) {
      return irregular(begin, fmt::format("the table of zstd frames {}", what));
    };
    const auto head = input_.peek(kSeekTableHead);
    if (head.size() < kSeekTableHead) return cut();
    const std::uint64_t size = word(head, 4), frames = frames_.size();
    input_.skip(kSeekTableHead);
    std::size_t entry = 0;
    for (const std::size_t width : {std::size_t{8}, std::size_t{12}})
      if (size == frames * width + kSeekTableTail) entry = width;
    if (entry == 0) return wrong("does not have an entry for each frame");
    for (std::size_t i = 0; i < frames; ++i) {
      const auto row = input_.peek(entry);
      if (row.size() < entry) return cut();
      if (word(row, 0) != frames_.stored(i) || word(row, 4) != frames_.decoded(i))
        return wrong("does not have the sizes of the frames");
      input_.skip(entry);
    }
    const auto tail = input_.peek(kSeekTableTail);
    if (tail.size() < kSeekTableTail) return cut();
    const auto flags = std::to_integer<unsigned>(tail[4]);
    if (word(tail, 0) != frames || word(tail, 5) != kSeekTableEnd || (flags & 0x7C) != 0 ||
        (frames > 0 && ((flags & 0x80) != 0) != (entry == 12)))
      return wrong("does not end as such a table does");
    input_.skip(kSeekTableTail);
    if (!input_.peek(1).empty())
      return fault(DecodeFault::trailing, input_.offset(), "bytes follow the table of zstd frames");
    if (made != demanded)
      return fault(DecodeFault::too_short, input_.offset(),
                   fmt::format("the zstd frames hold {} bytes, their tensor needs {}", made, demanded), demanded, made);
    return {};
  }

  // Decodes the frame at the input's position and adds its size to `made`.
  DecodeResult frame(const FrameHeader& header, std::uint64_t demanded, std::uint64_t& made, const Sink& sink) {
    // Content no larger than its window is decoded directly into one buffer of that size.
    const std::uint64_t left = demanded - made, maximum = header.content_size.value_or(left);
    const bool direct = maximum <= header.window;
    set_up(direct);
    const std::size_t room = direct ? base::to_size(maximum) : ZSTD_DStreamOutSize();
    if (output_.size() < std::max<std::size_t>(room, 1)) {
      std::vector<std::byte>().swap(output_);
      output_.resize(std::max<std::size_t>(room, 1));
    }
    ZSTD_outBuffer out{output_.data(), room, 0};
    ZSTD_inBuffer& in = input_.buffer();
    const auto give = [&] {
      if (out.pos == 0) return true;
      made += out.pos;
      return sink(std::span(output_).first(std::exchange(out.pos, 0)));
    };
    for (;;) {
      const std::size_t in_before = in.pos, out_before = out.pos;
      const std::size_t more = ZSTD_decompressStream(context_.get(), &out, &in);
      if (ZSTD_isError(more) != 0) {
        if (ZSTD_getErrorCode(more) == ZSTD_error_dstSize_tooSmall) return too_long(input_.offset(), demanded);
        if (ZSTD_getErrorCode(more) == ZSTD_error_memory_allocation) throw std::bad_alloc();
        return fault(DecodeFault::corrupt, input_.offset(),
                     fmt::format("the zstd frame is corrupt: {}", ZSTD_getErrorName(more)));
      }
      if (out.pos > demanded - made) return too_long(input_.offset(), demanded);
      const bool moved = in.pos != in_before || out.pos != out_before || !direct;
      if ((more == 0 || !direct) && !give()) return stopped(input_.offset());
      if (more == 0) return {};
      if (input_.used_up()) {
        if (input_.peek(1).empty())
          return truncated("stored bytes, inside the zstd frame,", input_.offset(), made + out.pos, demanded);
      } else if (!moved) {
        return too_long(input_.offset(), demanded);  // the output buffer is full, but the frame continues
      }
    }
  }

  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  const bool seekable_;
  SeekFrames frames_;
  std::vector<std::byte> in_buffer_, output_;
  Input input_{in_buffer_};
};

}  // namespace

std::unique_ptr<Decoder> make_zstd_decoder() { return std::make_unique<ZstdDecoder>(); }
std::unique_ptr<Decoder> make_zstd_seekable_decoder() { return std::make_unique<ZstdDecoder>(true); }

std::optional<std::uint64_t> zstd_stated_size(const Decoder::Pull& pull) {
  std::vector<std::byte> buffer;
  Input input(buffer);
  input.begin(pull);
  std::optional<std::uint64_t> total;
  for (;;) {
    const auto head = input.peek(kMaxHeader);
    if (is_skippable(head)) {
      if (head.size() < 8 || !input.skip(std::uint64_t{8} + base::load_le<std::uint32_t>(head.data() + 4)))
        return total;
      continue;
    }
    if (total && magic_of(head) != kMagic) return total;
    FrameHeader header;
    if (!parse_header(head, UINT64_MAX, header).ok() || !header.content_size) return std::nullopt;
    total = base::checked_add(total.value_or(0), *header.content_size);
    if (!total || !input.skip(header.length)) return total;
    for (bool last = false; !last;) {
      const auto block = input.peek(3);
      if (block.size() < 3) return total;
      const std::uint32_t bits = std::to_integer<std::uint32_t>(block[0]) |
                                 std::to_integer<std::uint32_t>(block[1]) << 8 |
                                 std::to_integer<std::uint32_t>(block[2]) << 16;
      last = (bits & 1) != 0;
      const bool run = (bits >> 1 & 3) == 1;  // stored as one repeated byte
      if (!input.skip(3 + (run ? 1 : bits >> 3))) return total;
    }
    if (header.checksum && !input.skip(4)) return total;
  }
}

std::size_t frame_length(std::span<const std::byte> stored) noexcept {
  const std::size_t length = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  return ZSTD_isError(length) != 0 ? 0 : length;
}

bool is_one_frame(std::span<const std::byte> stored, std::uint64_t content) noexcept {
  return magic_of(stored) == kMagic && ZSTD_getFrameContentSize(stored.data(), stored.size()) == content &&
         frame_length(stored) == stored.size() && ZSTD_getDictID_fromFrame(stored.data(), stored.size()) == 0;
}

}  // namespace weighbridge::codecs

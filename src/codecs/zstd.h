// SPDX-License-Identifier: Apache-2.0
// What is specific to zstd, beside its row in the table of codecs: what frames state of their size, and the table of
// frames at the end of a seekable stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "codecs/codec.h"

namespace weighbridge::codecs {

// The largest window that the decoder accepts.
inline constexpr std::uint64_t kZstdMaxWindow = std::uint64_t{128} << 20;

// The total content size that the frames of a part state, found without decoding. If the data is truncated or continues
// with something else, the sum up to there. nullopt if a frame does not state its size, or the data does not begin with
// a frame.
std::optional<std::uint64_t> zstd_stated_size(const Decoder::Pull&);

// The stored bytes of the frame with which the bytes begin; 0 if they do not begin with a whole one.
std::size_t frame_length(std::span<const std::byte> stored) noexcept;
// Whether the bytes are exactly one frame, not a skippable one, that states this content size and needs no dictionary.
bool is_one_frame(std::span<const std::byte> stored, std::uint64_t content) noexcept;

// The table of frames at the end of a seekable zstd stream (zstd's contrib/seekable_format, and zTensor 2's profile
// zt.zstd-seekable/1): its numbers, the rules that frames must keep, writing it, and finding frames by it. Any zstd
// decoder skips the table.
//
//   0x184D2A5E | size of the rest, u32 | frames x (stored u32, decoded u32 [, checksum u32]) | frames u32 | flags u8 |
//   0x8F92EAB1, all little-endian

inline constexpr std::uint32_t kSeekTable = 0x184D2A5Eu, kSeekTableEnd = 0x8F92EAB1u;
inline constexpr std::size_t kSeekTableHead = 8, kSeekTableTail = 9;
inline constexpr std::uint64_t kMaxInFrame = std::uint64_t{16} << 20;  // decoded; "Rules"
// Of a written frame. A smaller one compresses less, a larger one makes a short range expensive to read.
inline constexpr std::uint64_t kFrameContent = std::uint64_t{1} << 20;

// The frames of a stream, as they are decoded or written.
class SeekFrames {
 public:
  void clear() noexcept {
    stored_.clear();
    content_ = last_ = 0;
  }
  std::size_t size() const noexcept { return stored_.size(); }
  std::uint64_t memory() const noexcept { return (stored_.size() + 1) * sizeof(std::uint32_t); }
  std::uint32_t stored(std::size_t i) const noexcept { return stored_[i]; }
  std::uint64_t decoded(std::size_t i) const noexcept { return i + 1 == stored_.size() ? last_ : content_; }
  // False if the size of the previous frame's content is not that of the first, or one of the sizes takes more than 32
  // bits.
  bool add(std::uint64_t stored, std::uint64_t decoded);
  // The table that lists them.
  std::vector<std::byte> table() const;

 private:
  std::vector<std::uint32_t> stored_;
  std::uint64_t content_ = 0, last_ = 0;  // decoded: of the first frame, of the last
};

// Frames of a stored stream that hold a range of what it decodes to.
struct SeekRun {
  std::uint64_t offset = 0, length = 0;  // their stored bytes
  std::uint64_t begin = 0, size = 0;     // what they decode to
  std::vector<std::byte> table{};        // after their stored bytes, it makes them a stream of their own
};
// The frames that hold the decoded bytes [begin, end), not empty and within `decoded`, by the table at the end of the
// `stored` bytes. Memory grows with the range only. nullopt if it is not the table of such a stream: then decoding all
// of it shows what is wrong. `read` fills the span with stored bytes.
std::optional<SeekRun> find_frames(std::uint64_t stored, std::uint64_t decoded, std::uint64_t begin, std::uint64_t end,
                                   const std::function<void(std::uint64_t offset, std::span<std::byte>)>& read);

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Writes the table of frames, and finds the frames of a range by it. zstd_encoder.cc and zstd_decoder.cc code the
// frames.
#include "codecs/zstd.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/coding.h"

namespace weighbridge::codecs {
bool SeekFrames::add(std::uint64_t stored, std::uint64_t decoded) {
  if (stored > UINT32_MAX || decoded > UINT32_MAX || (!stored_.empty() && last_ != content_)) return false;
  if (stored_.empty()) content_ = decoded;
  last_ = decoded;
  stored_.push_back(static_cast<std::uint32_t>(stored));
  return true;
}

std::vector<std::byte> SeekFrames::table() const {
  std::vector<std::byte> out(kSeekTableHead + 8 * stored_.size() + kSeekTableTail);
  const auto put = [&](std::size_t at, std::uint64_t value) {
    base::store_le<std::uint32_t>(out.data() + at, static_cast<std::uint32_t>(value));
  };
  put(0, kSeekTable);
  put(4, out.size() - kSeekTableHead);
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    put(kSeekTableHead + 8 * i, stored_[i]);
    put(kSeekTableHead + 8 * i + 4, decoded(i));
  }
  put(out.size() - 9, stored_.size());
  put(out.size() - 4, kSeekTableEnd);  // between them, no flags
  return out;
}

std::optional<SeekRun> find_frames(std::uint64_t stored, std::uint64_t decoded, std::uint64_t begin, std::uint64_t end,
                                   const std::function<void(std::uint64_t offset, std::span<std::byte>)>& read) {
  const auto word = [](std::span<const std::byte> bytes, std::size_t at) {
    return base::load_le<std::uint32_t>(bytes.data() + at);
  };
  std::array<std::byte, kSeekTableTail> tail{};
  if (stored < kSeekTableHead + kSeekTableTail) return std::nullopt;
  read(stored - tail.size(), tail);
  const auto flags = std::to_integer<unsigned>(tail[4]);
  if (word(tail, 5) != kSeekTableEnd || (flags & 0x7C) != 0) return std::nullopt;
  const std::size_t entry = (flags & 0x80) != 0 ? 12 : 8;
  const std::uint64_t count = word(tail, 0), size = count * entry + kSeekTableTail;  // below 2^36
  if (size > stored - kSeekTableHead) return std::nullopt;
  const std::uint64_t table = stored - size - kSeekTableHead;
  std::array<std::byte, kSeekTableHead> head{};
  read(table, head);
  if (word(head, 0) != kSeekTable || word(head, 4) != size) return std::nullopt;

  SeekRun out;
  SeekFrames frames;
  std::vector<std::byte> rows;
  std::uint64_t stored_at = 0, decoded_at = 0, first = 0, before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    constexpr std::uint64_t kRows = 4096;
    if (i % kRows == 0) {
      rows.resize(static_cast<std::size_t>(std::min(kRows, count - i)) * entry);
      read(table + kSeekTableHead + i * entry, rows);
    }
    const auto row = std::span(rows).subspan(static_cast<std::size_t>(i % kRows) * entry, entry);
    const std::uint64_t length = word(row, 0), content = word(row, 4);
    if (content > kMaxInFrame || length > table - stored_at || content > decoded - decoded_at) return std::nullopt;
    if (i > 0 && before != first) return std::nullopt;  // only the last may have another size of content
    if (i == 0) first = content;
    before = content;
    if (decoded_at < end && decoded_at + content > begin) {
      if (frames.size() == 0) out.offset = stored_at, out.begin = decoded_at;
      frames.add(length, content);
      out.length += length;
      out.size += content;
    }
    stored_at += length;
    decoded_at += content;
  }
  if (stored_at != table || decoded_at != decoded) return std::nullopt;
  out.table = frames.table();
  return out;
}

std::uint64_t zstd_seekable_bound(std::uint64_t size) noexcept {
  const std::uint64_t whole = size / kFrameContent, frames = whole + (size % kFrameContent != 0 ? 1U : 0U);
  const auto body = base::checked_mul(whole, zstd_bound(kFrameContent) + 8);
  const auto all =
      body ? base::checked_add(*body, zstd_bound(size % kFrameContent) + 8 + kSeekTableHead + kSeekTableTail)
           : std::nullopt;
  return all && *all <= SIZE_MAX && frames <= UINT32_MAX / 16 ? *all : 0;
}

}  // namespace weighbridge::codecs

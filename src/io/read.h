// SPDX-License-Identifier: Apache-2.0
// How the bytes of a source are read: a text or a record at once, long ranges in pieces. The caller bounds texts and
// has checked ranges. All of it [reads].
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/record.h"
#include "weighbridge/source.h"

namespace weighbridge::io {

std::string text_of(const Source& source, std::uint64_t offset, std::uint64_t length);
// At most this many bytes of its beginning.
inline std::string head_of(const Source& source, std::uint64_t maximum) {
  return text_of(source, 0, std::min(maximum, source.size()));
}
// The whole source.
inline std::string text_of(const Source& source) { return text_of(source, 0, source.size()); }

template <class Record> Record record_of(const Source& source, std::uint64_t offset) {
  std::array<std::byte, base::record_size<Record>()> bytes{};
  source.read_at(offset, bytes);
  return base::load_record<Record>(bytes.data());
}

// The gap of the source's cost, at most almost 4 MiB: a source may say any number, and buffers have this size.
std::uint64_t gap_of(const Source& source) noexcept;
// The bytes that a job should read at once of a long range: `usual`, or the gap in whole pages and elements.
std::size_t piece_of(const Source& source, std::size_t usual) noexcept;

// Reads a range from front to back, in pieces of `usual` bytes or the source's gap: use(offset, bytes) may change the
// bytes, and returns whether to go on.
template <class Use>
void read_pieces(const Source& source, std::uint64_t begin, std::uint64_t end, Use&& use,
                 std::size_t usual = std::size_t{1} << 20) {
  const std::uint64_t maximum = piece_of(source, usual);
  const std::size_t capacity = base::to_size(std::min(maximum, end - begin));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
  while (begin < end) {
    const std::span piece(buffer.get(), base::to_size(std::min<std::uint64_t>(capacity, end - begin)));
    source.read_at(begin, piece);
    if (!use(begin, piece)) return;
    begin += piece.size();
  }
}

// Gives a decoder the bytes of a range from front to back, and reads at least the source's gap at once.
class StoredBytes {
 public:
  StoredBytes(const Source& source, std::uint64_t offset, std::uint64_t length)
      : source_(source), piece_(piece_of(source, 0)), at_(offset), left_(length) {}
  // Fills the front of `room`. Returns how many bytes; 0: there are no more.
  std::size_t operator()(std::span<std::byte> room);

 private:
  void read(std::span<std::byte> out);

  const Source& source_;
  const std::size_t piece_;
  std::uint64_t at_, left_;
  std::vector<std::byte> ahead_{};
  std::size_t used_ = 0;  // of ahead_
};

}  // namespace weighbridge::io

// SPDX-License-Identifier: Apache-2.0
#include "io/read.h"

namespace weighbridge::io {

std::string text_of(const Source& source, std::uint64_t offset, std::uint64_t length) {
  std::string out(base::to_size(length), '\0');
  if (length > 0) source.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

namespace {
constexpr std::uint64_t kUnit = 3 * 4096, kMaxGap = 341 * kUnit;  // an element may have three bytes
}

std::uint64_t gap_of(const Source& source) noexcept { return std::min(source.cost().gap, kMaxGap); }

std::size_t piece_of(const Source& source, std::size_t usual) noexcept {
  return std::max(usual, static_cast<std::size_t>((gap_of(source) + kUnit - 1) / kUnit * kUnit));
}

std::size_t StoredBytes::operator()(std::span<std::byte> room) {
  if (const std::uint64_t piece = std::min<std::uint64_t>(piece_, left_);
      used_ == ahead_.size() && room.size() < piece) {
    ahead_.resize(base::to_size(piece));
    read(ahead_);
    used_ = 0;
  }
  const auto kept = std::span(ahead_).subspan(used_);
  room = room.first(base::to_size(std::min<std::uint64_t>(room.size(), kept.empty() ? left_ : kept.size())));
  if (kept.empty()) {
    read(room);
  } else {
    std::ranges::copy(kept.first(room.size()), room.begin());
    used_ += room.size();
  }
  return room.size();
}

void StoredBytes::read(std::span<std::byte> out) {
  if (!out.empty()) source_.read_at(at_, out);
  at_ += out.size();
  left_ -= out.size();
}

}  // namespace weighbridge::io

// SPDX-License-Identifier: Apache-2.0
// The checksum of reading M1.
#include "codecs/indexed_checksum.h"

#include <bit>

#include "codecs/checksum.h"

namespace weighbridge::codecs {

void IndexedChecksum::update(std::span<const std::byte> bytes) noexcept {
  std::uint64_t h = value_, i = index_;
  for (const std::byte byte : bytes)
    h = std::rotl(h ^ (std::to_integer<std::uint64_t>(byte) + i++), 7) * std::uint64_t{0x100000001b3};
  value_ = h;
  index_ = i;
}

std::uint64_t indexed_checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  IndexedChecksum sum(seed);
  sum.update(bytes);
  return sum.value();
}

std::string checksum_text(std::uint64_t value) { return "0x" + to_hex(value); }

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Boolean bytes and packed codes.
#include "codecs/cast.h"

namespace weighbridge::codecs {

void normalize_bools(std::span<std::byte> data) noexcept {
  for (std::byte& b : data) b = b != std::byte{0} ? std::byte{1} : std::byte{0};
}

void unpack_codes(std::uint32_t bits, std::span<const std::byte> packed, std::span<std::byte> codes) noexcept {
  std::uint32_t held = 0, have = 0;
  std::size_t at = 0;
  for (std::byte& code : codes) {
    if (have < bits) {
      held |= std::to_integer<std::uint32_t>(packed[at++]) << have;
      have += 8;
    }
    code = static_cast<std::byte>(held & ((1u << bits) - 1));
    held >>= bits;
    have -= bits;
  }
}

void pack_codes(std::uint32_t bits, std::span<const std::byte> codes, std::span<std::byte> packed) noexcept {
  std::uint32_t held = 0, have = 0;
  std::size_t at = 0;
  for (const std::byte code : codes) {
    held |= (std::to_integer<std::uint32_t>(code) & ((1u << bits) - 1)) << have;
    have += bits;
    if (have >= 8) {
      packed[at++] = static_cast<std::byte>(held);
      held >>= 8;
      have -= 8;
    }
  }
  if (have > 0) packed[at] = static_cast<std::byte>(held);
}

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Boolean bytes and packed codes.
#include "codecs/cast.h"

#include "base/endian.h"

namespace weighbridge::codecs {

void normalize_bools(std::span<std::byte> data) noexcept {
  for (std::byte& b : data) b = b != std::byte{0} ? std::byte{1} : std::byte{0};
}

std::optional<std::uint64_t> find_non_bool(std::span<const std::byte> data) noexcept {
  constexpr std::uint64_t kOther = 0xFEFEFEFEFEFEFEFEu;
  std::size_t i = 0;
  for (; data.size() - i >= 32; i += 32) {
    const std::byte* at = data.data() + i;
    const std::uint64_t seen = base::load_le<std::uint64_t>(at) | base::load_le<std::uint64_t>(at + 8) |
                               base::load_le<std::uint64_t>(at + 16) | base::load_le<std::uint64_t>(at + 24);
    if ((seen & kOther) != 0) break;
  }
  for (; i < data.size(); ++i)
    if (std::to_integer<unsigned>(data[i]) > 1) return i;
  return std::nullopt;
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

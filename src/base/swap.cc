// SPDX-License-Identifier: Apache-2.0
// Swaps the byte order of whole buffers, in plain loops that the compiler turns into shuffles.
#include "base/endian.h"

namespace weighbridge::base {
namespace {

template <std::unsigned_integral T> void swap_all(std::span<std::byte> data) noexcept {
  for (std::size_t at = 0; at < data.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data() + at, sizeof value);
    value = byteswap(value);
    std::memcpy(data.data() + at, &value, sizeof value);
  }
}

}  // namespace

void swap_units(std::span<std::byte> data, std::uint32_t unit) noexcept {
  switch (unit) {
    case 2: return swap_all<std::uint16_t>(data);
    case 4: return swap_all<std::uint32_t>(data);
    case 8: return swap_all<std::uint64_t>(data);
    default: return;
  }
}

}  // namespace weighbridge::base

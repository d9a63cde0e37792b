// SPDX-License-Identifier: Apache-2.0
// A double as the half that holds exactly its value.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace weighbridge::ztensor1 {

// The bits of a half that holds exactly this value; NaNs keep their payload.
inline std::uint16_t half_bits(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<unsigned>(bits >> 48 & 0x8000u);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7FFu) - 1023;
  const std::uint64_t fraction = bits & 0xF'FFFF'FFFF'FFFFu;
  unsigned magnitude = 0;
  if (exponent == 1024)
    magnitude = 0x7C00u | static_cast<unsigned>(fraction >> 42);
  else if (exponent >= -14)
    magnitude = static_cast<unsigned>(exponent + 15) << 10 | static_cast<unsigned>(fraction >> 42);
  else if (value != 0)
    magnitude = static_cast<unsigned>(std::fabs(value) * 0x1p24);
  return static_cast<std::uint16_t>(sign | magnitude);
}

}  // namespace weighbridge::ztensor1

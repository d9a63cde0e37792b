// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16 as CBOR holds it: bits to double, exactly. Casts of tensors are not done here.
#pragma once
#include <bit>
#include <cstdint>

namespace weighbridge::wire {

// Exact; a NaN keeps its sign and payload.
constexpr double half_to_double(std::uint16_t half) noexcept {
  const std::uint64_t sign = std::uint64_t{half & 0x8000u} << 48;
  const unsigned exponent = half >> 10 & 31u;
  const std::uint64_t fraction = half & 0x3FFu;
  if (exponent == 0) {
    const double magnitude = static_cast<double>(fraction) * 0x1p-24;
    return std::bit_cast<double>(sign | std::bit_cast<std::uint64_t>(magnitude));
  }
  const std::uint64_t wide = exponent == 31 ? 0x7FFu : exponent - 15 + 1023;
  return std::bit_cast<double>(sign | wide << 52 | fraction << 42);
}

}  // namespace weighbridge::wire

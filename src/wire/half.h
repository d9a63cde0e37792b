// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16 in CBOR: exact conversion between bits and double. Tensors are cast in codecs.
#pragma once
#include <bit>
#include <cmath>
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

// The bits of the half with exactly this value; NaNs keep their payload. If no half has this value, returns some other
// half: widen the result to check.
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

}  // namespace weighbridge::wire

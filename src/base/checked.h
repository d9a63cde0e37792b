// SPDX-License-Identifier: Apache-2.0
// Checked arithmetic on numbers from files. Owns the extent test, checked sums and products (reading G1), and the
// conversion from 64-bit lengths to size_t.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/fail.h"

namespace weighbridge::base {

// offset + size <= end, without overflow.
constexpr bool fits(std::uint64_t offset, std::uint64_t size, std::uint64_t end) noexcept {
  return offset <= end && size <= end - offset;
}

constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// A length or index as size_t. With 32-bit addresses, as in WebAssembly, throws Error{limit} "limit/address-space" if
// it does not fit; elsewhere a plain conversion.
constexpr std::size_t to_size(std::uint64_t value) noexcept(sizeof(std::size_t) == sizeof(std::uint64_t)) {
  if constexpr (sizeof(std::size_t) < sizeof(std::uint64_t))
    if (value > SIZE_MAX) beyond_address_space(value);
  return static_cast<std::size_t>(value);
}

// The nearest float; infinity beyond the finite range, where a plain conversion is undefined.
constexpr float to_float(double value) noexcept {
  constexpr double kBeyond = 0x1.ffffffp127;  // half a step above the largest float
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
  if (value >= kBeyond) return kInfinity;
  if (value <= -kBeyond) return -kInfinity;
  if (value > kLargest) return kLargest;
  if (value < -kLargest) return -kLargest;
  return static_cast<float>(value);
}

// Number of elements of a shape: 0 if any dimension is 0, 1 for rank 0, nullopt above 2^64 - 1.
constexpr std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) noexcept {
  for (const std::uint64_t d : shape)
    if (d == 0) return 0;
  std::uint64_t product = 1;
  for (const std::uint64_t d : shape)
    if (__builtin_mul_overflow(product, d, &product)) return std::nullopt;
  return product;
}

// Rounds up to a multiple of a power of two; nullopt above 2^64 - 1.
constexpr std::optional<std::uint64_t> align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  const auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

}  // namespace weighbridge::base

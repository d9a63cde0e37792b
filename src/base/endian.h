// SPDX-License-Identifier: Apache-2.0
// Loads and stores integers at any alignment. Only this file reinterprets file bytes as numbers.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace weighbridge::base {

template <std::unsigned_integral T> constexpr T byteswap(T value) noexcept {
  if constexpr (sizeof(T) == 1)
    return value;
  else if constexpr (sizeof(T) == 2)
    return __builtin_bswap16(value);
  else if constexpr (sizeof(T) == 4)
    return __builtin_bswap32(value);
  else
    return __builtin_bswap64(value);
}

// `from` must point to at least sizeof(T) bytes.
template <std::unsigned_integral T> inline T load_le(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = byteswap(value);
  return value;
}
template <std::unsigned_integral T> inline T load_be(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = byteswap(value);
  return value;
}
template <std::unsigned_integral T> inline void store_le(void* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::big) value = byteswap(value);
  std::memcpy(to, &value, sizeof value);
}
template <std::unsigned_integral T> inline void store_be(void* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) value = byteswap(value);
  std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T> inline void append_le(std::string& to, T value) {
  char bytes[sizeof value];
  store_le(bytes, value);
  to.append(bytes, sizeof bytes);
}

// Reverses the bytes of each group of `unit` bytes (2, 4 or 8; 1 does nothing). data.size() is a multiple of `unit`.
void swap_units(std::span<std::byte> data, std::uint32_t unit) noexcept;

}  // namespace weighbridge::base

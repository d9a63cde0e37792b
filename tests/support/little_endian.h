// SPDX-License-Identifier: Apache-2.0
// Numbers as the bytes of a file, for files that are built in code.
#pragma once
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "base/endian.h"

namespace weighbridge::test {

// Of four or eight bytes each.
template <class T> std::string le(std::initializer_list<T> values) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::string out;
  for (const T value : values) {
    char raw[sizeof(T)];
    base::store_le(raw, std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(value));
    out.append(raw, sizeof raw);
  }
  return out;
}

}  // namespace weighbridge::test

// SPDX-License-Identifier: Apache-2.0
// Builds CBOR items as byte strings, valid or not, for corpora built in code and for tests.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/cbor_writer.h"

namespace weighbridge::wire::items {

using Fields = std::vector<std::pair<std::string, std::string>>;  // keys and values, each an item

inline const std::string kNull = "\xf6";

inline std::string text(std::string_view value) {
  CborWriter out;
  out.text(value);
  return out.take();
}
inline std::string number(std::uint64_t value) {
  CborWriter out;
  out.u64(value);
  return out.take();
}
// Short names, for items inside items.
inline std::string t(std::string_view value) { return text(value); }
inline std::string u(std::uint64_t value) { return number(value); }
inline std::string array(const std::vector<std::string>& elements) {
  CborWriter out;
  out.array(elements.size());
  for (const std::string& element : elements) out.raw(element);
  return out.take();
}
inline std::string map(const Fields& fields) {
  CborWriter out;
  out.map(fields.size());
  for (const auto& [key, value] : fields) {
    out.raw(key);
    out.raw(value);
  }
  return out.take();
}
// The same array or map with indefinite length and a break. It has at most 23 elements or entries.
inline std::string indefinite(std::string item) {
  item[0] = static_cast<char>((static_cast<unsigned char>(item[0]) & 0xE0U) | 31U);
  return item + '\xff';
}

}  // namespace weighbridge::wire::items

// SPDX-License-Identifier: Apache-2.0
// How the messages of this folder spell sizes, checksums, shapes and long texts.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "codecs/checksum.h"
#include "weighbridge/model.h"

namespace weighbridge::embd {

inline std::string bytes_text(std::uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }
inline std::string crc_text(std::uint32_t crc) { return "0x" + codecs::to_hex(crc); }

inline std::string shape_text(Shape shape) {
  std::string out = "[";
  for (const std::uint64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
  return out + "]";
}

// The start of a text that may be long.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return std::string(text);
  std::size_t cut = kMost;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;  // not inside a character
  return std::string(text.substr(0, cut)) + "...";
}

}  // namespace weighbridge::embd

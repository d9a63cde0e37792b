// SPDX-License-Identifier: Apache-2.0
// The UTF-8 decoder, from the table of RFC 3629, section 4, as bounds of the second byte.
#include "base/utf8.h"

#include <cstring>

namespace weighbridge::base {
namespace {

constexpr Decoded kInvalid{U'\uFFFD', 1, false};

unsigned byte_at(std::string_view text, std::size_t at) noexcept { return static_cast<unsigned char>(text[at]); }

}  // namespace

Decoded decode_utf8(std::string_view text, std::size_t at) noexcept {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return {static_cast<char32_t>(first), 1, true};
  if (first < 0xC2 || first > 0xF4) return kInvalid;
  const std::uint32_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() - at < length) return kInvalid;
  // The bounds of the second byte exclude overlong forms (E0, F0), surrogates (ED) and values above U+10FFFF (F4).
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  const unsigned second = byte_at(text, at + 1);
  if (second < low || second > high) return kInvalid;
  char32_t code_point = ((first & (0x7FU >> length)) << 6) | (second & 0x3FU);
  for (std::uint32_t i = 2; i < length; ++i) {
    const unsigned next = byte_at(text, at + i);
    if ((next & 0xC0U) != 0x80) return kInvalid;
    code_point = (code_point << 6) | (next & 0x3FU);
  }
  return {code_point, length, true};
}

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    // Names and keys are nearly always ASCII: take eight bytes at a time while no high bit is set.
    while (text.size() - at >= 8) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) != 0) break;
      at += 8;
    }
    if (at == text.size()) break;
    if (byte_at(text, at) < 0x80) {  // at the end of a text: most are short
      ++at;
      continue;
    }
    const Decoded decoded = decode_utf8(text, at);
    if (!decoded.valid) return at;
    at += decoded.length;
  }
  return std::string_view::npos;
}

void append_utf8(std::string& to, char32_t code_point) {
  const auto put = [&to](char32_t value) { to.push_back(static_cast<char>(static_cast<unsigned char>(value))); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace weighbridge::base

// SPDX-License-Identifier: Apache-2.0
// How byte-level vocabularies spell bytes: each as one character of GPT-2's table (encoder.py of openai/gpt-2). A
// printable byte is its own character, the others are U+0100, U+0101, ... in order.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace weighbridge::core {

inline constexpr std::size_t kSpellingCharacters = 0x144;
inline constexpr std::uint16_t kNoByte = 256;

// The byte of each character; kNoByte: none.
inline constexpr std::array<std::uint16_t, kSpellingCharacters> kSpelledByte = [] {
  std::array<std::uint16_t, kSpellingCharacters> out{};
  out.fill(kNoByte);
  std::size_t next = 256;
  for (std::uint16_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    out[printable ? b : next++] = b;
  }
  return out;
}();

// The character of each byte.
inline constexpr std::array<char16_t, 256> kByteSpelling = [] {
  std::array<char16_t, 256> out{};
  for (std::size_t c = 0; c < kSpellingCharacters; ++c)
    if (kSpelledByte[c] != kNoByte) out[kSpelledByte[c]] = static_cast<char16_t>(c);
  return out;
}();

inline std::string spelling_of(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) base::append_utf8(out, kByteSpelling[static_cast<unsigned char>(byte)]);
  return out;
}

// The bytes of a spelling; nullopt if it has another character.
inline std::optional<std::string> spelled_bytes(std::string_view spelling) {
  std::string out;
  for (std::size_t at = 0; at < spelling.size();) {
    const base::Decoded one = base::decode_utf8(spelling, at);
    const std::uint16_t byte =
        one.valid && one.code_point < kSpellingCharacters ? kSpelledByte[one.code_point] : kNoByte;
    if (byte == kNoByte) return std::nullopt;
    out += static_cast<char>(static_cast<unsigned char>(byte));
    at += one.length;
  }
  return out;
}

}  // namespace weighbridge::core

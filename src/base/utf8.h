// SPDX-License-Identifier: Apache-2.0
// UTF-8 as in RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weighbridge::base {

// Index of the first byte that is not valid UTF-8; npos if all is valid.
std::size_t find_invalid_utf8(std::string_view text) noexcept;
inline bool is_utf8(std::string_view text) noexcept { return find_invalid_utf8(text) == std::string_view::npos; }

struct Decoded {
  char32_t code_point;   // U+FFFD for an invalid byte
  std::uint32_t length;  // bytes consumed, at least 1
  bool valid;
};
// The character at text[at]; at < text.size(). An invalid byte is consumed singly.
Decoded decode_utf8(std::string_view text, std::size_t at) noexcept;
// Appends the UTF-8 form of a Unicode scalar value, or what the same bits would be for a surrogate.
void append_utf8(std::string& to, char32_t code_point);

// Characters that must not reach a terminal: controls (C0, DEL, C1), and characters that reorder text or are invisible.
bool steers_terminal(char32_t code_point) noexcept;

}  // namespace weighbridge::base

// SPDX-License-Identifier: Apache-2.0
// Escaping and width of text for display. tools/generate_width_table.py generates the tables.
#include <algorithm>
#include <iterator>
#include <span>

#include "base/utf8.h"
#include "base/width_table_generated.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

using base::CodePointRange;

bool within(std::span<const CodePointRange> ranges, char32_t code_point) noexcept {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

bool is_control(char32_t code_point) noexcept { return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0); }

void append_hex(std::string& to, char32_t value, int min_digits) {
  int digits = min_digits;
  while ((value >> (4 * digits)) != 0) ++digits;  // six at most: 10FFFF
  while (digits-- > 0) to += "0123456789abcdef"[(value >> (4 * digits)) & 15U];
}

void append_byte_escape(std::string& to, char32_t byte) {
  to += "\\x";
  append_hex(to, byte, 2);
}

// Printable ASCII: as wide as it is long, and it needs no table.
bool is_printable(char c) noexcept { return c >= 0x20 && c < 0x7F; }
bool is_plain(char c) noexcept { return is_printable(c) && c != '\\'; }

void append_escaped(std::string& to, char32_t code_point, std::string_view form) {
  switch (code_point) {
    case '\\': to += "\\\\"; return;
    case '\n': to += "\\n"; return;
    case '\r': to += "\\r"; return;
    case '\t': to += "\\t"; return;
    default: break;
  }
  // \x stands for one byte, so that C1 controls, which take two, differ from the invalid bytes 80 to 9f.
  if (code_point < 0x80 && is_control(code_point)) return append_byte_escape(to, code_point);
  if (!base::steers_terminal(code_point)) {
    to += form;
    return;
  }
  to += "\\u{";
  append_hex(to, code_point, 1);
  to += '}';
}

}  // namespace

bool base::steers_terminal(char32_t code_point) noexcept {
  return is_control(code_point) || within(kHidden, code_point);
}

std::string escape_for_display(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    const base::Decoded decoded = base::decode_utf8(text, at);
    if (decoded.valid)
      append_escaped(out, decoded.code_point, text.substr(at, decoded.length));
    else
      append_byte_escape(out, static_cast<unsigned char>(text[at]));
    at += decoded.length;
  }
  return out;
}

std::size_t display_width(std::string_view text) noexcept {
  if (std::all_of(text.begin(), text.end(), is_printable)) return text.size();
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const base::Decoded decoded = base::decode_utf8(text, at);
    at += decoded.length;
    if (is_control(decoded.code_point)) continue;
    if (within(base::kZeroWidth, decoded.code_point)) continue;
    width += within(base::kDoubleWidth, decoded.code_point) ? 2U : 1U;
  }
  return width;
}

}  // namespace weighbridge

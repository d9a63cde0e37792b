// SPDX-License-Identifier: Apache-2.0
// One pass over each text.
#include "wire/pickle.h"

#include "base/utf8.h"

namespace weighbridge::wire {

std::optional<std::string> unescape_string(std::string_view in) {
  std::string out;
  out.reserve(in.size());
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != '\\') {
      out += in[i];
      continue;
    }
    if (++i == in.size()) return std::nullopt;
    switch (in[i]) {
      case '\n': break;
      case '\\':
      case '\'':
      case '"': out += in[i]; break;
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'v': out += '\v'; break;
      case 'x': {
        if (in.size() - i < 3 || hex(in[i + 1]) < 0 || hex(in[i + 2]) < 0) return std::nullopt;
        out += static_cast<char>(hex(in[i + 1]) * 16 + hex(in[i + 2]));
        i += 2;
        break;
      }
      case '0':
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7': {
        unsigned value = 0;
        std::size_t digits = 0;
        for (; digits < 3 && i < in.size() && in[i] >= '0' && in[i] <= '7'; ++digits, ++i)
          value = value * 8 + static_cast<unsigned>(in[i] - '0');
        --i;
        out += static_cast<char>(value);
        break;
      }
      default: (out += '\\') += in[i];
    }
  }
  return out;
}

std::optional<std::string> unescape_unicode(std::string_view in) {
  std::string out;
  out.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool escape = in[i] == '\\' && i + 1 < in.size();
    const std::size_t digits = escape && in[i + 1] == 'u' ? 4 : escape && in[i + 1] == 'U' ? 8 : 0;
    if (digits == 0) {
      base::append_utf8(out, static_cast<unsigned char>(in[i]));
      if (escape) base::append_utf8(out, static_cast<unsigned char>(in[++i]));  // which does not begin another escape
      continue;
    }
    if (in.size() - i - 2 < digits) return std::nullopt;
    std::uint64_t c = 0;
    for (const char digit : in.substr(i + 2, digits)) {
      const int value = digit >= '0' && digit <= '9'   ? digit - '0'
                        : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                        : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                       : -1;
      if (value < 0) return std::nullopt;
      c = c * 16 + static_cast<unsigned>(value);
    }
    if (c > 0x10FFFF) return std::nullopt;
    base::append_utf8(out, static_cast<char32_t>(c));
    i += digits + 1;
  }
  return out;
}

std::optional<std::string> from_latin1(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c < 0x80) {
      out += utf8[i];
      continue;
    }
    const auto next = static_cast<unsigned char>(i + 1 < utf8.size() ? utf8[i + 1] : 0);
    if ((c != 0xC2 && c != 0xC3) || (next & 0xC0U) != 0x80U) return std::nullopt;
    out += static_cast<char>((c & 3U) << 6U | (next & 0x3FU));
    ++i;
  }
  return out;
}

}  // namespace weighbridge::wire

// SPDX-License-Identifier: Apache-2.0
// Converts JSON scalars: numbers from their digits, texts from their escapes. The grammar is in json_reader.cc.
#include <fast_float/fast_float.h>

#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "wire/json_reader.h"

namespace weighbridge::wire {

std::optional<std::uint64_t> as_u64(std::string_view raw) noexcept {
  if (raw.empty() || raw.size() > 20 || (raw[0] == '0' && raw.size() > 1)) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto digit = static_cast<unsigned>(static_cast<unsigned char>(raw[i])) - '0';
    if (digit > 9) return std::nullopt;
    // Nineteen digits always fit; the twentieth may not.
    if (i < 19)
      value = value * 10 + digit;
    else if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) || __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> as_i64(std::string_view raw) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const bool negative = raw.starts_with('-');
  const auto magnitude = as_u64(negative ? raw.substr(1) : raw);
  if (!magnitude || *magnitude > kMax + (negative ? 1u : 0u)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? ~*magnitude + 1 : *magnitude);
}

std::optional<double> as_double(std::string_view raw) noexcept {
  double value = 0;
  const char* const end = raw.data() + raw.size();
  const auto [past, error] = fast_float::from_chars(raw.data(), end, value);
  if (past != end || raw.empty() || !std::isfinite(value)) return std::nullopt;
  // fast_float reports underflow as out of range, with the value 0 that JSON readers use.
  if (error != std::errc() && error != std::errc::result_out_of_range) return std::nullopt;
  return value;
}

namespace {

unsigned hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  return static_cast<unsigned>((c | 0x20) - 'a' + 10) & 15u;
}

char32_t unit_at(std::string_view raw, std::size_t at) noexcept {
  char32_t unit = 0;
  for (std::size_t i = at; i < at + 4; ++i) unit = unit * 16 + hex_value(raw[i]);
  return unit;
}

char simple_escape(char c) noexcept {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;
  }
}

}  // namespace

void unescape(std::string_view raw, std::string& out) {
  out.clear();
  while (!raw.empty()) {
    const std::size_t slash = raw.find('\\');
    out.append(raw.substr(0, slash));
    if (slash == std::string_view::npos || raw.size() - slash < 2) return;
    raw.remove_prefix(slash);
    if (raw[1] != 'u') {
      out.push_back(simple_escape(raw[1]));
      raw.remove_prefix(2);
      continue;
    }
    if (raw.size() < 6) return;
    char32_t code = unit_at(raw, 2);
    raw.remove_prefix(6);
    if (code >= 0xD800 && code <= 0xDBFF && raw.size() >= 6) {
      code = 0x10000 + ((code - 0xD800) << 10) + ((unit_at(raw, 2) - 0xDC00) & 0x3FFu);
      raw.remove_prefix(6);
    }
    base::append_utf8(out, code);
  }
}

}  // namespace weighbridge::wire

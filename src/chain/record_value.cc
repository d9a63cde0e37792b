// SPDX-License-Identifier: Apache-2.0
// Parsing and formatting of values.
#include "chain/record.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>
#include <string>

#include "base/utf8.h"
#include "codecs/checksum.h"

namespace weighbridge::chain::internal {
namespace {

constexpr std::string_view kLower = "0123456789abcdef", kUpper = "0123456789ABCDEF";

bool is_hex(std::string_view text, std::size_t digits, std::string_view alphabet) noexcept {
  return text.size() == digits && text.find_first_not_of(alphabet) == std::string_view::npos;
}

bool is_choice(std::string_view choices, std::string_view text) noexcept {
  for (std::size_t begin = 0; begin <= choices.size();) {
    const std::size_t end = std::min(choices.find('|', begin), choices.size());
    if (choices.substr(begin, end - begin) == text) return true;
    begin = end + 1;
  }
  return false;
}

bool is_word(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

bool starts_with_checksum(std::string_view text) noexcept {
  return text.starts_with("0x") && is_hex(text.substr(2), 16, kLower);
}

bool allows(const Key& key, std::string_view text) {
  switch (key.type) {
    case Type::text: return true;
    case Type::word: return is_word(text);
    case Type::choice: return is_choice(key.choices, text);
    case Type::number: return parse_number(text).has_value();
    case Type::real: return parse_real(text).has_value();
    case Type::boolean: return text == "true" || text == "false";
    case Type::dims: return parse_dims(text).has_value();
    case Type::digest: return is_hex(text, 64, kLower);
    case Type::tagged: return text.starts_with("sha256:") && is_hex(text.substr(7), 64, kUpper);
    case Type::checksum: return starts_with_checksum(text);
    case Type::time: return is_time(text);
  }
  return false;
}

void append_hex(std::string& to, char c) {
  to += "\\x";
  to += codecs::to_hex(std::as_bytes(std::span(&c, 1)));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const base::Decoded character = base::decode_utf8(text, at);
    const char c = text[at];
    if (!character.valid)
      append_hex(out, c);
    else if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      append_hex(out, c);
    else
      out += text.substr(at, character.length);
    at += character.length;
  }
  return out;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      if (static_cast<unsigned char>(text[at]) < 0x20 || text[at] == 0x7f) return std::nullopt;
      out += text[at];
      continue;
    }
    if (++at == text.size()) return std::nullopt;
    switch (text[at]) {
      case '\\': out += '\\'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'x': {
        std::byte byte{};
        if (!codecs::from_hex(text.substr(at + 1, 2), std::span(&byte, 1))) return std::nullopt;
        out += static_cast<char>(byte);
        at += 2;
        break;
      }
      default: return std::nullopt;
    }
  }
  return out;
}

bool digits(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Decides whether a text that a person had to write has any content. Leaves the reaction to the steps.

constexpr std::string_view kWords[] = {"todo", "tbd", "tba",      "fixme",   "none",       "n/a",
                                       "na",   "xxx", "not done", "unknown", "placeholder"};

// Takes the first UTF-8 character; a byte that begins none counts as itself.
char32_t take(std::string_view& text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0xC0 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  char32_t out = length == 1 ? byte(0) : byte(0) & (0xFFU >> (length + 1));
  std::size_t used = 1;
  for (; used < length && used < text.size() && (byte(used) & 0xC0U) == 0x80; ++used)
    out = (out << 6U) | (byte(used) & 0x3FU);
  text.remove_prefix(used);
  return out;
}

struct Range {
  char32_t first, last;
};
bool lies_in(std::span<const Range> ranges, char32_t c) noexcept {
  return std::ranges::any_of(ranges, [=](const Range& range) { return range.first <= c && c <= range.last; });
}

bool is_space(char32_t c) noexcept {
  constexpr Range kSpaces[] = {{0x00, 0x20},     {0x7F, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                               {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x2800, 0x2800},
                               {0x3000, 0x3000}, {0x3164, 0x3164}};
  return lies_in(kSpaces, c);
}

// Characters without width: direction marks, joiners, variation selectors.
bool is_unseen(char32_t c) noexcept {
  constexpr Range kUnseen[] = {{0xAD, 0xAD},     {0x34F, 0x34F},   {0x61C, 0x61C},   {0x115F, 0x1160},
                               {0x180B, 0x180F}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F},
                               {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xE0000, 0xE0FFF}};
  return lies_in(kUnseen, c);
}

bool is_mark(char c) noexcept { return c > 0x20 && c < 0x7F && !std::isalnum(static_cast<unsigned char>(c)); }

// The text in lower case, without invisible characters, with single spaces, and with Unicode dashes and ellipses as
// '-'.
std::string reduced(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = take(text);
    if (is_unseen(c)) continue;
    if (is_space(c)) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else if ((c >= 0x2010 && c <= 0x2015) || c == 0x2026 || c == 0x2212) {
      out += '-';
    } else if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c + 32);
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::optional<std::string> parse_value(const Key& key, std::string_view spelled) {
  if (key.type == Type::text) return unescaped(spelled);
  if (!allows(key, spelled)) return std::nullopt;
  return std::string(spelled);
}

std::optional<std::string> spell_value(const Key& key, std::string_view meaning) {
  if (key.type == Type::text) return escaped(meaning);
  if (!allows(key, meaning)) return std::nullopt;
  return std::string(meaning);
}

std::string expectation(const Key& key) {
  switch (key.type) {
    case Type::text: return "a text whose backslashes and control characters are escaped by a backslash";
    case Type::word: return "printable ASCII without a space";
    case Type::choice: {
      std::string out = "one of " + std::string(key.choices);
      for (std::size_t at = 0; (at = out.find('|', at)) != std::string::npos;) out.replace(at, 1, ", ");
      return key.choices.find('|') == std::string_view::npos ? std::string(key.choices) : out;
    }
    case Type::number: return "a whole number below 2^64 without leading zeros";
    case Type::real: return "a finite number";
    case Type::boolean: return "true or false";
    case Type::dims: return "1 to 4 sizes with x between them";
    case Type::digest: return "64 lower-case hexadecimal digits";
    case Type::tagged: return "sha256: and 64 upper-case hexadecimal digits";
    case Type::checksum: return "0x and 16 lower-case hexadecimal digits";
    case Type::time: return "a time like 2026-01-31T12:00:00Z";
  }
  return {};
}

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  if (!digits(text) || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::vector<std::uint64_t>> parse_dims(std::string_view text) {
  std::vector<std::uint64_t> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    const auto size = parse_number(text.substr(begin, end - begin));
    if (!size || *size == 0 || out.size() == 4) return std::nullopt;
    out.push_back(*size);
    begin = end + 1;
  }
  return out;
}

bool is_time(std::string_view text) noexcept {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return false;
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  const int year = two(0) * 100 + two(2), month = two(5), day = two(8);
  if (month < 1 || month > 12) return false;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int days = kDays[month - 1] + (month == 2 && leap ? 1 : 0);
  return day >= 1 && day <= days && two(11) < 24 && two(14) < 60 && two(17) < 60;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const base::Decoded character = base::decode_utf8(text, at);
    base::append_utf8(out, character.code_point);
    at += character.length;
  }
  return out;
}

bool is_placeholder(std::string_view value) noexcept {
  return value.empty() || (value.front() == '<' && value.back() == '>');
}

bool says_nothing(std::string_view text) {
  const std::string held = reduced(text);
  if (is_placeholder(held)) return true;
  std::string_view word = held;
  const auto beside = [](char c) { return c == ' ' || is_mark(c); };
  while (!word.empty() && beside(word.front())) word.remove_prefix(1);
  while (!word.empty() && beside(word.back())) word.remove_suffix(1);
  return word.empty() || std::ranges::find(kWords, word) != std::end(kWords);
}

}  // namespace weighbridge::chain::internal

// SPDX-License-Identifier: Apache-2.0
// Decides whether a text that a person had to write has any content. Leaves the reaction to the steps.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>
#include <string>

#include "chain/record.h"

namespace weighbridge::chain::internal {
namespace {

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

// SPDX-License-Identifier: Apache-2.0
// Globs over names.
#include <cstddef>

#include "weighbridge/text.h"

namespace weighbridge {
namespace {

// Parses the byte set that opens at pattern[at] == '['; `next` is the position after its ']'. False if it never closes:
// then '[' is literal.
bool in_set(std::string_view pattern, std::size_t at, char c, std::size_t& next, bool& inside) {
  std::size_t i = at + 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (inverted) ++i;
  inside = false;
  for (const std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    const auto low = static_cast<unsigned char>(pattern[i]);
    auto high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = static_cast<unsigned char>(pattern[i + 2]);
      i += 2;
    }
    const auto byte = static_cast<unsigned char>(c);
    inside = inside || (low <= byte && byte <= high);
  }
  if (i >= pattern.size()) return false;
  next = i + 1;
  inside = inside != inverted;
  return true;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Whether the pattern element at `p` (not '*') matches at text[t]; advances both.
bool step(std::string_view pattern, std::size_t& p, std::string_view text, std::size_t& t) {
  if (pattern[p] == '?') {
    ++p;
    for (++t; t < text.size() && continues(text[t]); ++t) {}
    return true;
  }
  std::size_t next = 0;
  bool inside = false;
  if (pattern[p] == '[' && in_set(pattern, p, text[t], next, inside)) {
    p = next;
    ++t;
    return inside;
  }
  return pattern[p++] == text[t++];
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, resume = 0;  // after the last '*', and where in the text to retry it
  while (t < text.size()) {
    std::size_t p_next = p, t_next = t;
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = t;
    } else if (p < pattern.size() && step(pattern, p_next, text, t_next)) {
      p = p_next;
      t = t_next;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace weighbridge

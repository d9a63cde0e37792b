// SPDX-License-Identifier: Apache-2.0
// Sizes, shapes, names and long texts in messages, and the error for an invalid option value.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

inline std::string bytes_text(std::uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }
inline std::string missing_text(std::uint64_t bytes) {
  return bytes_text(bytes) + (bytes == 1 ? " is missing" : " are missing");
}

// "[2, 3]"
inline std::string shape_text(Shape shape) {
  std::string out = "[";
  for (const std::uint64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
  return out + "]";
}

// In double quotes, not escaped: front ends escape what they show.
inline std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// The beginning of a text, cut between characters.
inline std::string excerpt(std::string_view text, std::size_t most = 40) {
  if (text.size() <= most) return std::string(text);
  std::size_t cut = most;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return std::string(text.substr(0, cut)) + "...";
}

// Whether it is the name of a file or folder, and not a path or the like.
inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// Throws Error{misuse} that names the valid values of the option.
[[noreturn]] inline void refuse_word(std::string_view option, std::string_view text,
                                     std::span<const std::string_view> words) {
  if (words.empty()) base::misuse("option", "there is no option " + core::quoted(option));
  std::string sentence = std::string(option) + " cannot be " + core::quoted(excerpt(text)) + ": it is one of";
  for (const std::string_view word : words) sentence += " " + std::string(word);
  base::misuse("option", std::move(sentence));
}
inline void check_word(std::string_view option, std::string_view text, std::span<const std::string_view> words) {
  if (std::ranges::find(words, text) == words.end()) refuse_word(option, text, words);
}

}  // namespace weighbridge::core

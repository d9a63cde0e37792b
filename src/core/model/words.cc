// SPDX-License-Identifier: Apache-2.0
#include "core/model/words.h"

#include <algorithm>

#include "base/fail.h"
#include "io/read.h"

namespace weighbridge::core {

std::string bytes_text(std::uint64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }
std::string missing_text(std::uint64_t bytes) {
  return bytes_text(bytes) + (bytes == 1 ? " is missing" : " are missing");
}

std::string shape_text(Shape shape) {
  std::string out = "[";
  for (const std::uint64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
  return out + "]";
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string excerpt(std::string_view text, std::size_t maximum) {
  if (text.size() <= maximum) return std::string(text);
  std::size_t cut = maximum;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return std::string(text.substr(0, cut)) + "...";
}

bool has_word(std::string_view words, std::string_view word) noexcept {
  if (word.empty() || word.find(' ') != word.npos) return false;
  for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

void refuse_word(std::string_view option, std::string_view text, std::span<const std::string_view> words) {
  if (words.empty()) base::misuse("option", "there is no option " + core::quoted(option));
  std::string sentence = std::string(option) + " cannot be " + core::quoted(excerpt(text)) + ": it is one of";
  for (const std::string_view word : words) sentence += " " + std::string(word);
  base::misuse("option", std::move(sentence));
}
void check_word(std::string_view option, std::string_view text, std::span<const std::string_view> words) {
  if (std::ranges::find(words, text) == words.end()) refuse_word(option, text, words);
}

std::string whole_text(const Source& source, const Limits& limits, std::string_view what) {
  if (source.size() > limits.header)
    base::over_limit("header",
                     std::string(what) + " has " + std::to_string(source.size()) + " bytes, more than the limit of " +
                         std::to_string(limits.header),
                     source.size());
  return io::text_of(source);
}

}  // namespace weighbridge::core

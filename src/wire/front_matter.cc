// SPDX-License-Identifier: Apache-2.0
// Goes by lines: a key, and the lines below it that are indented, or begin with "- ".
#include "wire/front_matter.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/utf8.h"
#include "wire/json_reader.h"

namespace weighbridge::wire {
namespace {

using Lines = std::span<const std::string_view>;
using Values = std::optional<std::vector<std::string>>;

constexpr std::string_view kWhite = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhite);
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(kWhite) + 1 - first);
}
std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(" \t"), line.size()); }
bool is_comment(std::string_view trimmed_text) { return trimmed_text.empty() || trimmed_text[0] == '#'; }

// nullopt: of a form that is not read.
std::optional<std::string> scalar(std::string_view text) {
  if (text.starts_with('"')) {  // the escapes of JSON are YAML's too
    JsonReader in(text);
    JsonString string;
    std::string scratch;
    if (!in.read_string(string) || !is_comment(trimmed(text.substr(static_cast<std::size_t>(in.offset())))))
      return std::nullopt;
    return std::string(json_text(string, scratch));
  }
  if (text.starts_with('\'')) {
    std::string out;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (text[at] != '\'') {
        out += text[at];
      } else if (text.substr(at + 1).starts_with('\'')) {
        out += text[at++];
      } else {
        return is_comment(trimmed(text.substr(at + 1))) ? std::optional(out) : std::nullopt;
      }
    }
    return std::nullopt;
  }
  text = trimmed(text.substr(0, text.find(" #")));
  constexpr std::string_view kOtherForms = "[]{}&*!|>%@`,?";
  if (text.empty() || kOtherForms.find(text[0]) != kOtherForms.npos || text == "-" || text.starts_with("- ") ||
      text.find(": ") != text.npos || text.ends_with(':'))
    return std::nullopt;
  return std::string(text);
}

// [a, "b"]
Values flow_list(std::string_view text) {
  std::vector<std::string> out;
  text = trimmed(text.substr(1));
  while (!text.starts_with(']')) {
    std::size_t end = 0;
    for (char quote = 0; end < text.size(); ++end) {
      const char c = text[end];
      if (quote == 0 && (c == ',' || c == ']')) break;
      if (quote == 0 && (c == '[' || c == '{' || c == '}')) return std::nullopt;
      if (quote == 0 && end == 0 && (c == '"' || c == '\''))
        quote = c;
      else if (c == quote)
        quote = 0;
    }
    if (end == text.size()) return std::nullopt;
    const auto value = scalar(trimmed(text.substr(0, end)));
    if (!value) return std::nullopt;
    out.push_back(*value);
    text = text[end] == ',' ? trimmed(text.substr(end + 1)) : text.substr(end);
  }
  return is_comment(trimmed(text.substr(1))) ? Values(std::move(out)) : std::nullopt;
}

Values block_list(Lines lines) {
  std::vector<std::string> out;
  std::size_t indent = std::string_view::npos;
  for (const std::string_view line : lines) {
    const std::string_view text = trimmed(line);
    if (is_comment(text)) continue;
    if (out.empty()) indent = indent_of(line);
    const auto value = text.starts_with("- ") ? scalar(trimmed(text.substr(2))) : std::nullopt;
    if (!value || indent_of(line) != indent) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

// After "|" or ">", where a line break is a space, with "-" for no line break at the end.
Values block_text(Lines lines, bool folded, bool strip) {
  while (!lines.empty() && trimmed(lines.back()).empty()) lines = lines.first(lines.size() - 1);
  std::string out;
  const std::size_t indent = lines.empty() ? 0 : indent_of(lines[0]);
  bool broken = true;  // a line break stands before the line
  for (const std::string_view line : lines) {
    const bool blank = trimmed(line).empty();
    if (!blank && (indent == 0 || indent_of(line) < indent || (folded && indent_of(line) > indent)))
      return std::nullopt;
    if (!out.empty() && !folded) out += '\n';
    if (folded && blank) out += '\n';
    if (folded && !blank && !broken) out += ' ';
    broken = blank;
    if (!blank) out += line.substr(indent, line.find_last_not_of('\r') + 1 - indent);
  }
  if (!strip && !out.empty()) out += '\n';
  return std::vector{std::move(out)};
}

Values values_of(std::string_view text, Lines below) {
  if (text == "|" || text == "|-" || text == ">" || text == ">-")
    return block_text(below, text[0] == '>', text.ends_with('-'));
  if (is_comment(text)) return block_list(below);
  if (std::ranges::any_of(below, [](std::string_view line) { return !is_comment(trimmed(line)); })) return std::nullopt;
  if (text.starts_with('[')) return flow_list(text);
  const auto value = scalar(text);
  if (!value) return std::nullopt;
  return *value == text && (text == "null" || text == "~") ? std::vector<std::string>{} : std::vector{*value};
}

}  // namespace

const std::vector<std::string>* FrontMatter::find(std::string_view key) const noexcept {
  const auto at = std::ranges::find(entries, key, &Entry::key);
  return at == entries.end() ? nullptr : &at->values;
}

FrontMatter read_front_matter(std::string_view text) {
  constexpr std::string_view kFence = "---";
  constexpr std::size_t kShown = 40;
  FrontMatter out;
  if (!base::is_utf8(text)) return out;
  std::vector<std::string_view> lines;
  bool open = false, closed = false;
  for (std::size_t begin = 0; begin < text.size() && !closed;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const bool fence = line.substr(0, line.find_last_not_of(kWhite) + 1) == kFence;
    if (!open && !fence) return out;
    closed = open && fence;
    if (open && !closed) lines.push_back(line);
    open = true;
  }
  if (!closed) return out;
  for (std::size_t at = 0; at < lines.size() && out.entries.size() + out.skipped.size() < kMaxKeys;) {
    const std::string_view line = lines[at++];
    if (is_comment(trimmed(line))) continue;
    const std::size_t first = at;
    while (at < lines.size() && (trimmed(lines[at]).empty() || indent_of(lines[at]) > 0 || lines[at].starts_with("- ")))
      ++at;
    const std::size_t colon = line.find(':');
    const bool keyed = colon != line.npos && indent_of(line) == 0 &&
                       (colon + 1 == line.size() || kWhite.find(line[colon + 1]) != kWhite.npos);
    const std::string key(trimmed(line.substr(0, std::min(colon, kShown))));
    auto values = keyed && colon <= kShown
                      ? values_of(trimmed(line.substr(colon + 1)), Lines(lines).subspan(first, at - first))
                      : std::nullopt;
    std::erase_if(out.entries, [&](const FrontMatter::Entry& each) { return each.key == key; });
    if (values)
      out.entries.push_back({key, *std::move(values)});
    else if (base::is_utf8(key))
      out.skipped.push_back(key);
  }
  return out;
}

}  // namespace weighbridge::wire

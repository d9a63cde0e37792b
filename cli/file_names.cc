// SPDX-License-Identifier: Apache-2.0
// A name may contain only what every common system allows, so that a folder can be copied anywhere.
#include "file_names.h"

#include <algorithm>
#include <array>

#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kLongestFileName = 180;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// Whether the UTF-8 character that begins with this byte, not ASCII, may have another case. Only these scripts are
// known to have no case: Hebrew to Tibetan, and those of East Asia.
bool may_have_case(unsigned char lead) {
  return lead < 0xD7 || lead == 0xE1 || lead == 0xE2 || lead == 0xEA || lead >= 0xEF;
}

// Equal for names that differ only in case. Without a table of letters beyond ASCII, all characters that may have a
// case count as equal, so some names get numbers that they do not need.
std::string key_of(std::string_view name) {
  std::string out;
  for (const char c : lower(name)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0U) == 0x80U;
    if (continues && out.ends_with('?')) continue;
    out += byte >= 0x80 && !continues && may_have_case(byte) ? '?' : c;
  }
  return out;
}

// CON, NUL, COM1 ..., with or without an extension.
bool is_reserved(std::string_view stem) {
  const std::string base = lower(stem.substr(0, stem.find('.')));
  constexpr std::array<std::string_view, 4> kDevices{"con", "prn", "aux", "nul"};
  if (std::find(kDevices.begin(), kDevices.end(), base) != kDevices.end()) return true;
  return base.size() == 4 && (base.starts_with("com") || base.starts_with("lpt")) && base[3] >= '1' && base[3] <= '9';
}

}  // namespace

std::string file_stem(std::string_view tensor_name) {
  std::string out;
  const std::string harmless =
      escape_for_display(tensor_name);  // turns control characters and direction marks into backslash escapes
  for (const char c : harmless) out += std::string_view("/\\:*?\"<>|").find(c) == std::string_view::npos ? c : '_';
  if (out.size() > kLongestFileName) {
    std::size_t end = kLongestFileName;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0U) == 0x80U) --end;
    out.resize(end);
  }
  while (!out.empty() && (out.back() == '.' || out.back() == ' ')) out.pop_back();
  if (out.empty() || is_reserved(out)) out.insert(0, 1, '_');
  if (out.front() == '.' || out.front() == '-') out.front() = '_';
  return out;
}

std::string FileNames::next(std::string_view tensor_name, std::string_view extension) {
  const std::string stem = file_stem(tensor_name);
  std::string name = stem + std::string(extension);
  auto [at, is_new] = taken_.try_emplace(key_of(name), 1);
  while (!is_new) {
    name = stem + "-" + std::to_string(++at->second) + std::string(extension);
    is_new = taken_.try_emplace(key_of(name), 1).second;
  }
  return name;
}

}  // namespace weighbridge::cli

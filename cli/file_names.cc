// SPDX-License-Identifier: Apache-2.0
// What a name may hold is decided by the strictest of the usual systems, so that a folder can be copied anywhere.
#include "file_names.h"

#include <algorithm>
#include <array>

#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

constexpr std::size_t kLongest = 180;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// Whether a character of UTF-8 that begins with this byte, which is none of ASCII, may have another case. Only scripts
// that have none are known: Hebrew to Tibetan, and those of East Asia.
bool may_have_case(unsigned char lead) {
  return lead < 0xD7 || lead == 0xE1 || lead == 0xE2 || lead == 0xEA || lead >= 0xEF;
}

// The same for names that differ in nothing but the case of letters. Beyond ASCII that goes without a table of them:
// all that may have a case are as one, so that names get numbers which would not have needed them.
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

// CON, NUL, COM1 ..., also before an extension.
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
      escape_for_display(tensor_name);  // controls and direction marks are backslash escapes now
  for (const char c : harmless) out += std::string_view("/\\:*?\"<>|").find(c) == std::string_view::npos ? c : '_';
  if (out.size() > kLongest) {
    std::size_t end = kLongest;
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

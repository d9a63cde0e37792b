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
  for (unsigned n = 2; !taken_.insert(lower(name)).second; ++n)
    name = stem + "-" + std::to_string(n) + std::string(extension);
  return name;
}

}  // namespace weighbridge::cli

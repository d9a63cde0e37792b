// SPDX-License-Identifier: Apache-2.0
#include "results/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace weighbridge::svg {
namespace {

constexpr std::uint64_t kMaxLayers = 1000;

constexpr std::string_view kStyle =
    "text{font:12px system-ui,-apple-system,'Segoe "
    "UI',Helvetica,Arial,sans-serif}.title{font-size:15px;font-weight:600}"
    ".small{font-size:11px}.card{fill:#ffffff;stroke:#d0d7de}.text{fill:#1f2328}.quiet{fill:#59636e}.none{fill:#eef1f4}"
    ".much{fill:#2f6fb5}.gone{fill:#c4621d}"
    "@media(prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#3d444d}.text{fill:#f0f6fc}.quiet{fill:#9aa4af}"
    ".none{fill:#1b2129}.much{fill:#5aa2ee}.gone{fill:#ee8f45}}";

}  // namespace

std::string safe(std::string_view text) {
  constexpr std::string_view kNone = "\xEF\xBF\xBD";
  const bool valid = base::is_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto code = static_cast<unsigned char>(c);
    if (const std::string_view three = text.substr(i, 3); three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF") {
      out += kNone;
      i += 2;
    } else if (code < 0x20 || code == 0x7F || (code >= 0x80 && !valid)) {
      out += kNone;
    } else if (c == '<' || c == '>') {
      out += c == '<' ? "&lt;" : "&gt;";
    } else if (c == '&' || c == '"') {
      out += c == '&' ? "&amp;" : "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string fitted(std::string_view name, std::size_t maximum) {
  if (name.size() <= maximum) return safe(name);
  std::size_t begin = name.size() - maximum + 3;
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xC0U) == 0x80U) ++begin;
  return "..." + safe(name.substr(begin));
}

std::string text(double x, double y, std::string_view classes, std::string_view escaped, std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\"{}>{}</text>\n", x, y, classes, more, escaped);
}

std::optional<Place> place_of(std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (!part.empty() && error == std::errc{} && rest == part.data() + part.size() && number < kMaxLayers)
      return Place{std::string(name.substr(0, begin)) + "*" + std::string(name.substr(end)), number};
    begin = end + 1;
  }
  return std::nullopt;
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return fitted(path.substr(path.rfind('/') + 1));
}

std::string document(std::string_view title, std::string_view subtitle, double height, std::string_view body) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{2}</title>\n"
             "<desc id=\"desc\">{3}</desc>\n<style>{4}</style>\n"
             "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{5:.0f}\" height=\"{6:.0f}\" rx=\"8\"/>\n",
             kWidth, height, title, subtitle, kStyle, kWidth - 1, height - 1) +
         text(kMargin, 28, "text title", title) + text(kMargin, 48, "quiet", subtitle) + std::string(body) + "</svg>\n";
}

}  // namespace weighbridge::svg

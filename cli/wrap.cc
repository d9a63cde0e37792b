// SPDX-License-Identifier: Apache-2.0
// Greedy line filling: a word stays on the line if it fits.
#include "wrap.h"

#include <algorithm>
#include <vector>

#include "os.h"
#include "output.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

// Splits at blanks outside of quotes.
std::vector<std::string> shell_words(std::string_view command) {
  std::vector<std::string> out(1);
  char quote = 0;
  for (const char c : command) {
    if (quote == 0 && c == ' ') {
      out.emplace_back();
      continue;
    }
    if (quote == c)
      quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    out.back() += c;
  }
  return out;
}

}  // namespace

std::size_t help_columns() {
  const std::size_t columns = os::terminal_columns(os::Stream::output);
  return columns == 0 ? 80 : std::clamp<std::size_t>(columns, 40, 100);
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t used, std::size_t indent) {
  std::string out;
  bool begins = true;  // the line has no word yet
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t width = display_width(word);
    if (!begins && used + 1 + width > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!begins) {
      out += ' ';
      ++used;
    }
    out += word;
    used += width;
    begins = false;
    if (end < text.size() && text[end] == '\n') {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      begins = true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string wrapped_command(std::string_view command, std::size_t columns, std::size_t used, std::size_t indent) {
  constexpr std::string_view kGoesOn = " \\";
  const std::vector<std::string> words = shell_words(command);
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string piece = words[i];
    const bool valued = piece.starts_with('-') && piece.size() > 1 && i + 1 < words.size();
    if (valued && !words[i + 1].starts_with('-') && words[i + 1] != "|") piece += " " + words[++i];
    const std::size_t width = display_width(piece), rest = i + 1 < words.size() ? kGoesOn.size() : 0;
    if (!out.empty() && used + 1 + width + rest > columns) {
      out += std::string(kGoesOn) + "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++used;
    }
    out += piece;
    used += width;
  }
  return out;
}

}  // namespace weighbridge::cli

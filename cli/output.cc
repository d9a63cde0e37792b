// SPDX-License-Identifier: Apache-2.0
// Buffering, escaping and number formatting, all independent of the locale.
#include "output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "os.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  return os::is_terminal(os::Stream::output) && terminal && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

constexpr std::string_view code(Tone tone) {
  switch (tone) {
    case Tone::plain: break;
    case Tone::good: return "\x1b[1;32m";
    case Tone::bad: return "\x1b[1;31m";
    case Tone::warning: return "\x1b[1;35m";
    case Tone::heading: return "\x1b[1m";
  }
  return "";
}

// Whether all is printable ASCII other than the backslash, which escaping doubles. Checks eight bytes at a time,
// because every name of a listing passes through here twice.
bool is_plain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x80 * kOnes;
  const auto has_below = [](std::uint64_t word, std::uint64_t byte) { return (word - byte * kOnes) & ~word & kHigh; };
  const auto is_odd = [&](const char* eight) {
    std::uint64_t word = 0;
    std::memcpy(&word, eight, 8);
    return ((word & kHigh) | has_below(word, ' ') | has_below(word ^ ('\\' * kOnes), 1) |
            has_below(word ^ (0x7F * kOnes), 1)) != 0;
  };
  if (text.size() < 8) return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '\\'; });
  for (std::size_t at = 0; text.size() - at > 8; at += 8)
    if (is_odd(text.data() + at)) return false;
  return !is_odd(text.data() + text.size() - 8);  // overlaps those before
}

}  // namespace

Output::Output() : columns_(os::terminal_columns(os::Stream::output)), color_(wants_color()) {
  buffer_.reserve(kFull + (kFull >> 4));  // growing step by step would touch twice the memory
}

void Output::shown(std::string_view text) {
  append_shown(buffer_, text);
  drain();
}

void Output::toned(Tone tone, std::string_view text) {
  const bool color = color_ && tone != Tone::plain;
  if (color) buffer_.append(code(tone));
  buffer_.append(text);
  if (color) buffer_.append("\x1b[0m");
  drain();
}

void Output::write_all(const char* data, std::size_t size) {
  while (size > 0 && !closed_) {
    const std::ptrdiff_t written = os::write(os::Stream::output, data, size);
    if (written >= 0) {
      data += written;
      size -= static_cast<std::size_t>(written);
    } else if (errno == EPIPE) {
      closed_ = true;
    } else {
      const int error_number = errno;
      closed_ = true;
      throw OutputFailed{error_number};
    }
  }
}

void Output::flush() {
  std::string text;
  text.swap(buffer_);
  write_all(text.data(), text.size());
  text.clear();
  if (buffer_.empty()) buffer_.swap(text);  // keeps the capacity
}

bool Output::bytes(std::span<const std::byte> bytes) {
  flush();
  write_all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return !closed_;
}

void remark(std::string_view line) {
  std::string text(line);
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::ptrdiff_t written = os::write(os::Stream::errors, rest.data(), rest.size());
    if (written < 0) return;  // there is nowhere left to report it
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void complain(std::string_view sentence) { remark("weighbridge: " + std::string(sentence)); }

std::string shown(std::string_view text) { return is_plain(text) ? std::string(text) : escape_for_display(text); }

std::string quote(std::string_view text) { return "'" + shown(text) + "'"; }

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
  return shown(out + "'");
}

std::size_t append_shown(std::string& to, std::string_view text) {
  if (is_plain(text)) {
    to.append(text);
    return text.size();
  }
  const std::string escaped = escape_for_display(text);
  to.append(escaped);
  return display_width(escaped);
}

std::size_t width_shown(std::string_view text) {
  return is_plain(text) ? text.size() : display_width(escape_for_display(text));
}

std::string fitted(std::string_view text, std::size_t columns) { return fitted_shown(shown(text), columns); }

std::string fitted_shown(const std::string& all, std::size_t columns) {
  constexpr std::string_view kDots = "...";
  if (display_width(all) <= columns || columns < kDots.size() + 2) return all;
  // The end of a name tells more than its beginning, so it gets more room. Never cuts inside a character.
  const std::size_t tail_room = (columns - kDots.size()) * 3 / 5, head_room = columns - kDots.size() - tail_room;
  const auto is_inside = [&](std::size_t at) { return (static_cast<unsigned char>(all[at]) & 0xC0U) == 0x80U; };
  std::size_t head = std::min(all.size(), head_room);
  while (head > 0 && (is_inside(head) || display_width(std::string_view(all).substr(0, head)) > head_room)) --head;
  std::size_t tail = all.size() - std::min(all.size(), tail_room);
  while (tail < all.size() && (is_inside(tail) || display_width(std::string_view(all).substr(tail)) > tail_room))
    ++tail;
  return all.substr(0, head) + std::string(kDots) + all.substr(tail);
}

void append_number(std::string& to, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  to.append(digits.data(), end);
}

void append_size(std::string& to, std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits{" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  std::size_t unit = 0;
  std::uint64_t whole = bytes, rest = 0;  // rest: in 1024ths of the unit
  while (whole >= 1024) {
    rest = whole % 1024;
    whole /= 1024;
    ++unit;
  }
  std::uint64_t tenths = (rest * 10 + 512) / 1024;
  if (tenths == 10) {
    ++whole;
    tenths = 0;
  }
  append_number(to, whole);
  if (unit > 0 && whole < 100) {
    to += '.';
    append_number(to, tenths);
  }
  to.append(kUnits[unit]);
}

std::string size_text(std::uint64_t bytes) {
  std::string out;
  append_size(out, bytes);
  return out;
}

std::string grouped(std::uint64_t number) {
  std::string digits;
  append_number(digits, number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}
std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return grouped(count) + " " + std::string(count == 1 ? one : many);
}

}  // namespace weighbridge::cli

// SPDX-License-Identifier: Apache-2.0
// Drawing the bar, at most ten times a second.
#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "interrupt.h"
#include "output.h"

namespace weighbridge::cli {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(500);  // shorter jobs draw nothing
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr std::size_t kBar = 24;

std::size_t terminal_columns() {
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void put(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // a bar that cannot be drawn is no error
}

std::string two_digits(std::uint64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

std::string time_text(std::uint64_t seconds) {
  const std::string tail = two_digits(seconds / 60 % 60) + ":" + two_digits(seconds % 60);
  return seconds >= 3600 ? std::to_string(seconds / 3600) + ":" + tail : tail;
}

}  // namespace

Progress::Progress(std::string_view label, bool quiet)
    : label_(label), draws_(!quiet && ::isatty(STDERR_FILENO) == 1), begin_(Clock::now()), next_(begin_ + kPatience) {}

std::function<bool(std::uint64_t, std::uint64_t)> Progress::hook() {
  return [this](std::uint64_t done, std::uint64_t total) {
    tell(done, total);
    return interrupted() == 0;
  };
}

void Progress::tell(std::uint64_t done, std::uint64_t total) {
  if (!draws_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kPause;
  draw(done, total, now);
}

void Progress::draw(std::uint64_t done, std::uint64_t total, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-3);
  std::string line = label_ + " ";
  if (total > 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const auto full = static_cast<std::size_t>(part * static_cast<double>(kBar));
    line += "[" + std::string(full, '=') + std::string(kBar - full, ' ') + "] ";
    line += std::to_string(static_cast<unsigned>(part * 100)) + " %  " + size_text(done) + " of " + size_text(total);
  } else {
    line += size_text(done);
  }
  line += "  " + size_text(static_cast<std::uint64_t>(rate)) + "/s";
  if (total > done && rate > 0)
    line += "  " + time_text(static_cast<std::uint64_t>(static_cast<double>(total - done) / rate)) + " left";
  const std::size_t columns = terminal_columns();
  if (line.size() >= columns) line.resize(columns - 1);
  put("\r\x1b[K" + line);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) put("\r\x1b[K");
  drawn_ = false;
}

}  // namespace weighbridge::cli

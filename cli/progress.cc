// SPDX-License-Identifier: Apache-2.0
// A thread draws the bar ten times a second; the working thread only stores the numbers.
#include "progress.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "interrupt.h"
#include "os.h"
#include "output.h"
#include "weighbridge/text.h"

namespace weighbridge::cli {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(500);  // shorter jobs draw nothing
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr std::size_t kWidestBar = 24, kNarrowestBar = 6;

// A terminal without cursor movement would print one bar after the other.
bool can_draw() {
  const char* const terminal = std::getenv("TERM");
  return os::is_terminal(os::Stream::errors) && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

std::string two_digits(std::uint64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

std::string time_text(std::uint64_t seconds) {
  const std::string tail = two_digits(seconds / 60 % 60) + ":" + two_digits(seconds % 60);
  return seconds >= 3600 ? std::to_string(seconds / 3600) + ":" + tail : tail;
}

std::string bar(double part, std::size_t width) {
  const auto full = static_cast<std::size_t>(part * static_cast<double>(width));
  return "[" + std::string(full, '=') + std::string(width - full, ' ') + "] ";
}

}  // namespace

Progress::Progress(std::string_view label, bool quiet)
    : label_(label), draws_(!quiet && can_draw()), job_begin_(Clock::now()), begin_(job_begin_) {
  if (!draws_) return;
  try {
    drawer_ = start_without_signals([this] { draw_now_and_then(); });
  } catch (const std::system_error&) {
    draws_ = false;  // the job runs without a bar
  }
}

Progress::~Progress() {
  if (!draws_) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  drawer_.join();
  // Without a bar, the terminal's echoed ^C is on the line.
  if (interrupted() != 0 && !drawn_) draw("\n", false);
  clear();
}

std::function<bool(std::uint64_t, std::uint64_t)> Progress::hook() { return hook({}); }

std::function<bool(std::uint64_t, std::uint64_t)> Progress::hook(std::string_view unit) {
  return [this, unit](std::uint64_t done, std::uint64_t total) {
    update(done, total, unit);
    return interrupted() == 0;
  };
}

void Progress::update(std::uint64_t done, std::uint64_t total, std::string_view unit) {
  if (!draws_) return;
  const std::lock_guard lock(mutex_);
  working_ = true;
  done_ = done;
  total_ = total;
  unit_ = unit;
}

void Progress::begin(std::string_view subject, bool working) {
  if (!draws_) return;
  const std::lock_guard lock(mutex_);
  subject_ = subject;
  begin_ = Clock::now();
  done_ = total_ = 0;
  working_ = working;
}

void Progress::about(std::string_view subject) { begin(subject, false); }
void Progress::busy(std::string_view subject) { begin(subject, true); }

// The cursor stays at the beginning of the line. If the terminal becomes narrower, it wraps the bar after the cursor,
// and erasing to the end of the screen removes all of it.
void Progress::draw_now_and_then() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kPause, [&] { return ends_; })) {
    const auto now = Clock::now();
    const std::size_t columns = os::terminal_columns(os::Stream::errors);
    if (!working_ || now - job_begin_ < kPatience || columns < 2) continue;
    draw("\r\x1b[J" + line(columns - 1, now) + "\r", true);
    drawn_ = true;
  }
}

// Fits the line into `columns`: first shortens the bar, then drops the rate, the sizes, the bar and the name.
std::string Progress::line(std::size_t columns, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done_) / std::max(seconds, 1e-3);
  const auto amount = [&](std::uint64_t n) {
    return unit_.empty() ? size_text(n) : grouped(n) + (n == done_ && total_ > 0 ? "" : " " + std::string(unit_));
  };
  const std::string subject = subject_.empty() ? "" : " " + fitted(subject_, std::max<std::size_t>(columns / 4, 12));
  const std::string head = label_ + subject + " ";
  if (done_ == 0 && total_ == 0) {
    const std::string all = head + " " + time_text(static_cast<std::uint64_t>(seconds));
    return all.substr(0, columns);
  }
  std::string speed =
      "  " + (unit_.empty() ? size_text(static_cast<std::uint64_t>(rate)) : grouped(static_cast<std::uint64_t>(rate))) +
      "/s";
  if (total_ == 0) {
    const std::string maximum = head + amount(done_) + speed;
    return display_width(maximum) <= columns ? maximum : (label_ + " " + amount(done_)).substr(0, columns);
  }
  const double part = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const std::string percent = std::to_string(static_cast<unsigned>(part * 100)) + " %";
  const std::string sizes = "  " + amount(done_) + " of " + amount(total_);
  std::string left;
  if (total_ > done_ && rate > 0)
    left = "  " + time_text(static_cast<std::uint64_t>(static_cast<double>(total_ - done_) / rate)) + " left";
  constexpr std::size_t kFrame = 3;  // "[] "
  for (const std::string& tail : {percent + sizes + speed + left, percent + sizes + left, percent + left}) {
    const std::size_t taken = display_width(head) + kFrame + tail.size();
    if (taken + kNarrowestBar <= columns) return head + bar(part, std::min(kWidestBar, columns - taken)) + tail;
  }
  const std::string minimum = label_ + " " + percent + left;
  return minimum.size() <= columns ? minimum : percent.substr(0, columns);
}

void Progress::clear() {
  if (!draws_) return;
  const std::lock_guard lock(mutex_);
  working_ = false;
  if (drawn_) draw("\r\x1b[J", false);
  drawn_ = false;
}

}  // namespace weighbridge::cli

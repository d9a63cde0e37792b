// SPDX-License-Identifier: Apache-2.0
// Times as ISO 8601 text.
#include "base/timestamp.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/fail.h"

namespace weighbridge::base {
namespace {

constexpr std::uint64_t kEndOf9999 = 253'402'300'800;

// Consumes a text from the front.
class Cursor {
 public:
  explicit Cursor(std::string_view text) noexcept : text_(text) {}
  bool done() const noexcept { return text_.empty(); }
  bool take(char c) noexcept {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly `digits` digits whose value is at most `maximum`.
  bool number(std::size_t digits, unsigned maximum, unsigned& out) noexcept {
    if (text_.size() < digits) return false;
    out = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return false;
      out = out * 10 + static_cast<unsigned>(text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return out <= maximum;
  }
  // At least one digit.
  bool fraction() noexcept {
    const std::size_t end = text_.find_first_not_of("0123456789");
    const std::size_t count = end == std::string_view::npos ? text_.size() : end;
    text_.remove_prefix(count);
    return count > 0;
  }

 private:
  std::string_view text_;
};

bool take_date(Cursor& in) noexcept {
  unsigned year = 0, month = 0, day = 0;
  return in.number(4, 9999, year) && in.take('-') && in.number(2, 12, month) && in.take('-') && in.number(2, 31, day) &&
         std::chrono::year_month_day(std::chrono::year(static_cast<int>(year)), std::chrono::month(month),
                                     std::chrono::day(day))
             .ok();
}

bool take_clock(Cursor& in) noexcept {
  unsigned hour = 0, minute = 0, second = 0;
  if (!in.number(2, 24, hour) || !in.take(':') || !in.number(2, 59, minute)) return false;
  if (in.take(':') && !in.number(2, 60, second)) return false;  // 60 is a leap second
  return !in.take('.') || in.fraction();
}

bool take_zone(Cursor& in) noexcept {
  if (in.done() || in.take('Z')) return true;
  unsigned part = 0;
  if (!(in.take('+') || in.take('-')) || !in.number(2, 99, part)) return false;
  return in.done() || (in.take(':'), in.number(2, 99, part));
}

}  // namespace

bool is_iso8601(std::string_view text) noexcept {
  Cursor in(text);
  if (!take_date(in)) return false;
  if (in.done()) return true;
  return in.take('T') && take_clock(in) && take_zone(in) && in.done();
}

std::string utc_time(std::uint64_t seconds) {
  constexpr std::uint64_t kDay = 86'400;
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::days(seconds / kDay)));
  const std::uint64_t clock = seconds % kDay;
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02u:%02u:%02uZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<unsigned>(clock / 3600), static_cast<unsigned>(clock / 60 % 60),
                static_cast<unsigned>(clock % 60));
  return text;
}

std::string reproducible_time() {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return utc_time(0);
  const std::string_view text(epoch);
  std::uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds >= kEndOf9999)
    misuse("source-date-epoch",
           "SOURCE_DATE_EPOCH is '" + std::string(text) + "', not a number of seconds after 1970 up to the year 9999");
  return utc_time(seconds);
}

}  // namespace weighbridge::base

// SPDX-License-Identifier: Apache-2.0
// Times as ISO 8601 text: which texts are valid (reading E12), and which time is written by default (E9).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weighbridge::base {

// A calendar date in the extended form, YYYY-MM-DD, alone or followed by T, a time with minutes or seconds, an optional
// fraction, and an optional zone (Z, +hh, +hhmm, +hh:mm).
bool is_iso8601(std::string_view text) noexcept;

// The time `seconds` after 1970-01-01T00:00:00Z; below 253402300800, so that the year has four digits.
std::string utc_time(std::uint64_t seconds);

// SOURCE_DATE_EPOCH as a time; 1970-01-01 if it is not set. Error{misuse} if it is not a number of seconds that
// utc_time() takes.
std::string reproducible_time();

}  // namespace weighbridge::base

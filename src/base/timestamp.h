// SPDX-License-Identifier: Apache-2.0
// Times as ISO 8601 text: what counts as one (readings E12), and what is written when nobody gives a time (E9).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace weighbridge::base {

// A calendar date in the extended form, YYYY-MM-DD, alone or followed by T, a time with minutes or seconds, an optional
// fraction, and an optional zone (Z, +hh, +hhmm, +hh:mm).
bool is_iso8601(std::string_view text) noexcept;

// Seconds after 1970-01-01T00:00:00Z; below 253402300800, so that the year has four digits.
std::string utc_time(std::uint64_t seconds);

// SOURCE_DATE_EPOCH as a time, or that of 1970 where it is not set. Error{misuse} when it is set to anything but
// seconds that utc_time() takes.
std::string reproducible_time();

}  // namespace weighbridge::base

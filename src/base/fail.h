// SPDX-License-Identifier: Apache-2.0
// Short ways to throw the library's one exception. Owns the spelling of misuse and io findings.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weighbridge/error.h"

namespace weighbridge::base {

// Throws Error of kind misuse with rule "misuse/<what>".
[[noreturn]] void misuse(std::string_view what, std::string message);
// Throws Error of kind io with rule "io/<what>"; `error_number` (errno, 0 for none) adds its text.
[[noreturn]] void io_error(std::string_view what, std::string message, int error_number = 0);
// Throws Error of kind unsupported with rule `rule`.
[[noreturn]] void unsupported(std::string_view rule, std::string message);
// Throws Error of kind malformed with rule `rule`, for payload that turns out broken while it is read.
[[noreturn]] void malformed(std::string_view rule, std::string message);
// Throws Error of kind unsupported with rule "limit/address-space": `value` bytes or elements at once. For checked.h.
[[noreturn]] void beyond_address_space(std::uint64_t value);

}  // namespace weighbridge::base

// SPDX-License-Identifier: Apache-2.0
// Short ways to throw the library's one exception. Owns the spelling of misuse, io and limit findings.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weighbridge/error.h"

namespace weighbridge::base {

// A sentence does not name the file that `file` says it is about: front ends do.

// Throws Error of kind misuse with rule "misuse/<what>"; `hint` says which option would help.
[[noreturn]] void misuse(std::string_view what, std::string message, Hint hint = {});
[[noreturn]] void misuse_of(std::string_view file, std::string_view what, std::string message, Hint hint = {});
// Throws Error of kind io with rule "io/<what>"; `error_number` (errno, 0 for none) adds its text.
[[noreturn]] void io_error(std::string_view what, std::string message, int error_number = 0);
[[noreturn]] void io_error_of(std::string_view file, std::string_view what, std::string message, int error_number = 0);
// Throws Error of kind unsupported with rule `rule`.
[[noreturn]] void unsupported(std::string_view rule, std::string message, Hint hint = {});
// Throws Error of kind malformed with rule `rule`, for payload that turns out broken while it is read.
[[noreturn]] void malformed(std::string_view rule, std::string message);
// Throws Error of kind limit with rule "limit/<member>", where `member` is one of Limits; `needed` would do, 0 where
// that is not known.
[[noreturn]] void over_limit(std::string_view member, std::string message, std::uint64_t needed = 0);
// Throws Error of kind limit with rule "limit/address-space": `value` bytes or elements at once. For checked.h.
[[noreturn]] void beyond_address_space(std::uint64_t value);

// Whether this kind says that the input is at fault, or too large to tell, rather than the caller or the machine.
constexpr bool refuses_input(Kind kind) noexcept { return kind == Kind::malformed || kind == Kind::limit; }

// Hints: the option of that name, given that value where one is known; the member of Limits.
inline Hint option_hint(std::string_view name, std::string value = {}) {
  return {Hint::What::option, std::string(name), std::move(value)};
}
inline Hint limit_hint(std::string_view member, std::string value = {}) {
  return {Hint::What::limit, std::string(member), std::move(value)};
}

}  // namespace weighbridge::base

// SPDX-License-Identifier: Apache-2.0
// Short ways to throw Error, and which findings leave a file in doubt. Owns the form of misuse, io and limit findings.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weighbridge/error.h"

namespace weighbridge::base {

// A message does not name the file in Finding::file: front ends do.

// Throws Error of kind misuse with rule "misuse/<what>"; `hint` names the option that would help.
[[noreturn]] void misuse(std::string_view what, std::string message, Hint hint = {});
[[noreturn]] void misuse_of(std::string_view file, std::string_view what, std::string message, Hint hint = {});
// Throws Error of kind io with rule "io/<what>"; appends the text of `error_number` (errno; 0 for none).
[[noreturn]] void io_error(std::string_view what, std::string message, int error_number = 0);
[[noreturn]] void io_error_of(std::string_view file, std::string_view what, std::string message, int error_number = 0);
// Throws Error of kind unsupported with rule `rule`.
[[noreturn]] void unsupported(std::string_view rule, std::string message, Hint hint = {});
// Throws Error of kind malformed with rule `rule`, for payload found invalid while it is read, and for models that do
// not fit a job. An empty name is no tensor.
[[noreturn]] void malformed(std::string_view rule, std::string message, std::string_view tensor = {}, Hint hint = {});
// Throws Error of kind limit with rule "limit/<member>", where `member` is one of Limits; `needed` is a sufficient
// value, 0 if unknown.
[[noreturn]] void over_limit(std::string_view member, std::string message, std::uint64_t needed = 0);
// Throws Error of kind limit with rule "limit/address-space": `value` bytes or elements at once. For checked.h.
[[noreturn]] void beyond_address_space(std::uint64_t value);

// Whether this kind blames the input (invalid, or too large to check), not the caller or the system.
constexpr bool refuses_input(Kind kind) noexcept { return kind == Kind::malformed || kind == Kind::limit; }

// Hints: an option, with a value if known; a member of Limits.
inline Hint option_hint(std::string_view name, std::string value = {}) {
  return {Hint::What::option, std::string(name), std::move(value)};
}
// The bytes that the file would have if it were whole.
inline Hint size_hint(std::uint64_t bytes) { return {Hint::What::size, {}, std::to_string(bytes)}; }
inline Hint limit_hint(std::string_view member, std::string value = {}) {
  return {Hint::What::limit, std::string(member), std::move(value)};
}

// Which findings say that a file is not known to be safe. They are warnings, so the file is valid, but it is not "ok".

// A pickle names what is on neither list (".../unknown-global"), or was not looked into (".../unread-pickle").
constexpr bool is_not_known_safe(std::string_view rule) noexcept {
  return rule.ends_with("/unknown-global") || rule.ends_with("/unread-pickle");
}

}  // namespace weighbridge::base

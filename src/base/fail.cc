// SPDX-License-Identifier: Apache-2.0
// The ways to throw Error.
#include "base/fail.h"

#include <system_error>
#include <utility>

namespace weighbridge::base {
namespace {

[[noreturn]] void raise(std::string rule, Kind kind, Severity severity, std::string message) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.kind = kind;
  finding.severity = severity;
  finding.message = std::move(message);
  throw Error(std::move(finding));
}

}  // namespace

void misuse(std::string_view what, std::string message) {
  raise("misuse/" + std::string(what), Kind::misuse, Severity::error, std::move(message));
}

void io_error(std::string_view what, std::string message, int error_number) {
  if (error_number != 0) message += ": " + std::generic_category().message(error_number);
  raise("io/" + std::string(what), Kind::io, Severity::error, std::move(message));
}

void unsupported(std::string_view rule, std::string message) {
  raise(std::string(rule), Kind::unsupported, Severity::unsupported, std::move(message));
}

void malformed(std::string_view rule, std::string message) {
  raise(std::string(rule), Kind::malformed, Severity::error, std::move(message));
}

void beyond_address_space(std::uint64_t value) {
  unsupported("limit/address-space",
              std::to_string(value) + " bytes or elements at once are more memory than this build can address");
}

}  // namespace weighbridge::base

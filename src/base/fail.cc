// SPDX-License-Identifier: Apache-2.0
// The ways to throw Error.
#include "base/fail.h"

#include <system_error>

namespace weighbridge::base {
namespace {

[[noreturn]] void raise(std::string rule, Kind kind, Severity severity, std::string message, Hint hint = {},
                        std::string_view file = {}, std::string_view tensor = {}) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.kind = kind;
  finding.severity = severity;
  finding.message = std::move(message);
  finding.hint = std::move(hint);
  finding.file.name = file;
  finding.tensor = tensor;
  finding.has_tensor = !tensor.empty();
  throw Error(std::move(finding));
}

}  // namespace

void misuse(std::string_view what, std::string message, Hint hint) {
  misuse_of({}, what, std::move(message), std::move(hint));
}

void misuse_of(std::string_view file, std::string_view what, std::string message, Hint hint) {
  raise("misuse/" + std::string(what), Kind::misuse, Severity::error, std::move(message), std::move(hint), file);
}

void io_error(std::string_view what, std::string message, int error_number) {
  io_error_of({}, what, std::move(message), error_number);
}

void io_error_of(std::string_view file, std::string_view what, std::string message, int error_number) {
  if (error_number != 0) message += ": " + std::generic_category().message(error_number);
  raise("io/" + std::string(what), Kind::io, Severity::error, std::move(message), {}, file);
}

void unsupported(std::string_view rule, std::string message, Hint hint) {
  raise(std::string(rule), Kind::unsupported, Severity::unsupported, std::move(message), std::move(hint));
}

void malformed(std::string_view rule, std::string message, std::string_view tensor, Hint hint) {
  raise(std::string(rule), Kind::malformed, Severity::error, std::move(message), std::move(hint), {}, tensor);
}

void over_limit(std::string_view member, std::string message, std::uint64_t needed) {
  raise("limit/" + std::string(member), Kind::limit, Severity::error, std::move(message),
        limit_hint(member, needed == 0 ? std::string{} : std::to_string(needed)));
}

void beyond_address_space(std::uint64_t value) {
  raise("limit/address-space", Kind::limit, Severity::error,
        std::to_string(value) + " bytes or elements at once are more memory than this build can address");
}

}  // namespace weighbridge::base

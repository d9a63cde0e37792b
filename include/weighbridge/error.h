// SPDX-License-Identifier: Apache-2.0
// weighbridge/error.h: how the library says what is wrong. Owns Finding, Report and the one exception type, Error.
//
// Four kinds that never mix:
//   malformed    the file breaks a rule
//   unsupported  valid as far as it can be read, holds what this build cannot interpret
//   misuse       the caller asked for what cannot be
//   io           the machine: unreadable, vanished, shrunk, full
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge {

enum class Kind : std::uint8_t { malformed, unsupported, misuse, io };
// error: the file is invalid. warning: worth knowing, the file stays valid. unsupported: one tensor cannot be
// interpreted.
enum class Severity : std::uint8_t { error, warning, unsupported };

std::string_view name(Kind) noexcept;
std::string_view name(Severity) noexcept;

// One thing found in a file. `message` is one lower-case sentence without a final full stop that a stranger can act on;
// it already contains what matters of expected and found. Texts that come from the file are exact (not escaped) here.
struct Finding {
  std::string rule;  // stable id: "<format>/<rule>", "limit/<limit>", "io/<what>", "file/<what>", "misuse/<what>"
  Severity severity = Severity::error;
  Kind kind = Kind::malformed;
  std::optional<std::uint64_t> offset;  // byte offset in the file; none where no single byte is to blame
  std::string tensor;                   // name of the tensor concerned; empty where none is
  bool has_tensor = false;              // tells the empty name from none
  std::string expected, found;          // both empty where the rule has no such pair
  std::string message;
  bool operator==(const Finding&) const = default;
};

// What a check found, in order: structural findings in the walker's order, then whole-file checksums, then content
// findings by offset and rule. At most kMaxFindings are kept; `total` counts all.
class Report {
 public:
  static constexpr std::size_t kMaxFindings = 1000;

  void add(Finding);
  void append(const Report&);

  const std::vector<Finding>& findings() const noexcept { return findings_; }
  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t errors() const noexcept { return errors_; }
  std::uint64_t warnings() const noexcept { return warnings_; }
  std::uint64_t unsupported() const noexcept { return total_ - errors_ - warnings_; }
  // No error: warnings and unsupported tensors leave a file valid.
  bool valid() const noexcept { return errors_ == 0; }
  const Finding* first_error() const noexcept { return first_error_ ? &*first_error_ : nullptr; }

 private:
  std::vector<Finding> findings_;
  std::optional<Finding> first_error_;
  std::uint64_t total_ = 0, errors_ = 0, warnings_ = 0;
};

// The one exception of the library; what() is the finding's message.
class Error : public std::runtime_error {
 public:
  explicit Error(Finding finding) : std::runtime_error(finding.message), finding_(std::move(finding)) {}
  Kind kind() const noexcept { return finding_.kind; }
  const Finding& finding() const noexcept { return finding_; }

 private:
  Finding finding_;
};

// The caller's progress hook asked to stop. Not an Error: nothing is wrong.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }
};

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the library says what is wrong. Owns Finding, Report, the one error that is thrown, Error, and Cancelled, which
/// is none.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge {

/// Four kinds of failure that never mix.
enum class Kind : std::uint8_t {
  malformed,    ///< the file breaks a rule
  unsupported,  ///< valid as far as it can be read, holds what this build cannot interpret
  misuse,       ///< the caller asked for what cannot be
  io            ///< the machine: unreadable, vanished, shrunk, full
};
/// What a finding means for the file.
enum class Severity : std::uint8_t {
  error,       ///< it is invalid
  warning,     ///< worth knowing, it stays valid
  unsupported  ///< one tensor cannot be interpreted
};

std::string_view name(Kind) noexcept;      ///< "malformed", "unsupported", "misuse", "io"
std::string_view name(Severity) noexcept;  ///< "error", "warning", "unsupported"

/// One thing found in a file. `message` is one lower-case sentence without a final full stop that a stranger can act
/// on; it already contains what matters of expected and found. Texts that come from the file are exact (not escaped)
/// here.
struct Finding {
  std::string rule;  ///< stable id: "<format>/<rule>", "limit/<limit>", "io/<what>", "file/<what>", "misuse/<what>"
  Severity severity = Severity::error;  ///< what it means for the file
  Kind kind = Kind::malformed;          ///< of failure, where it is thrown
  std::optional<std::uint64_t> offset;  ///< byte offset in the file; none where no single byte is to blame
  std::string tensor;                   ///< name of the tensor concerned; empty where none is
  bool has_tensor = false;              ///< tells the empty name from none
  std::string expected;                 ///< empty, as `found` is, where the rule has no such pair
  std::string found;                    ///< in the units of `expected`
  std::string message;                  ///< the sentence
  bool operator==(const Finding&) const = default;
};

/// What a check found, in order: structural findings in the walker's order, then whole-file checksums, then content
/// findings by offset and rule. At most kMaxFindings are kept; `total` counts all.
class Report {
 public:
  static constexpr std::size_t kMaxFindings = 1000;  ///< that are kept

  void add(Finding);           ///< Counts it, and keeps it while there is room.
  void append(const Report&);  ///< All of another report, behind what is here.

  const std::vector<Finding>& findings() const noexcept { return findings_; }          ///< those kept
  std::uint64_t total() const noexcept { return total_; }                              ///< of all severities
  std::uint64_t errors() const noexcept { return errors_; }                            ///< of Severity::error
  std::uint64_t warnings() const noexcept { return warnings_; }                        ///< of Severity::warning
  std::uint64_t unsupported() const noexcept { return total_ - errors_ - warnings_; }  ///< of Severity::unsupported
  /// No error: warnings and unsupported tensors leave a file valid.
  bool valid() const noexcept { return errors_ == 0; }
  const Finding* first_error() const noexcept { return first_error_ ? &*first_error_ : nullptr; }  ///< null: valid()

 private:
  std::vector<Finding> findings_;
  std::optional<Finding> first_error_;
  std::uint64_t total_ = 0, errors_ = 0, warnings_ = 0;
};

/// The one error of the library; what() is the finding's message.
class Error : public std::runtime_error {
 public:
  /// From what was found.
  explicit Error(Finding finding) : std::runtime_error(finding.message), finding_(std::move(finding)) {}
  Kind kind() const noexcept { return finding_.kind; }          ///< finding().kind
  const Finding& finding() const noexcept { return finding_; }  ///< what was found, where

 private:
  Finding finding_;
};

/// The caller's progress hook asked to stop. Not an Error: nothing is wrong.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }  ///< always "cancelled"
};

}  // namespace weighbridge

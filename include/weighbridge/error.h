// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the library says what is wrong. Owns Finding, Report, the one error that is thrown, Error, and Cancelled, which
/// is none.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge {

/// Five kinds of failure that never mix.
enum class Kind : std::uint8_t {
  malformed,    ///< the file breaks a rule
  unsupported,  ///< valid as far as it can be read, holds what this build cannot interpret
  misuse,       ///< the caller asked for what cannot be
  io,           ///< the machine: unreadable, vanished, shrunk, full
  limit         ///< more than the caller granted, which says nothing about whether the file is sound
};
/// What a finding means for the file.
enum class Severity : std::uint8_t {
  error,       ///< it is invalid
  warning,     ///< worth knowing, it stays valid
  unsupported  ///< one tensor cannot be interpreted
};

std::string_view name(Kind) noexcept;      ///< "malformed", "unsupported", "misuse", "io", "limit"
std::string_view name(Severity) noexcept;  ///< "error", "warning", "unsupported"

/// A file that a finding is about, where it is another one than the file or folder that was asked about: a sidecar, a
/// shard, a record, an output.
struct FileRef {
  std::string name{};                     ///< as Source::name() gives it: a path, or a word in angle brackets
  std::optional<std::uint32_t> source{};  ///< its place in Model::sources(), where it is one of them
  bool empty() const noexcept { return name.empty(); }  ///< the file or folder that was asked about
  bool operator==(const FileRef&) const = default;
};

/// What would help, for a front end to say in its own words: a flag of the command, an option of a call.
struct Hint {
  /// What is to be set.
  enum class What : std::uint8_t {
    none,   ///< nothing that is known would help
    limit,  ///< a member of Limits
    option  ///< an option of what was called, spelled with hyphens: "max-length"
  };
  What what = What::none;
  std::string name{};   ///< of the limit or option
  std::string value{};  ///< that would do; empty: the caller's to choose
  bool operator==(const Hint&) const = default;
};
std::string_view name(Hint::What) noexcept;  ///< "none", "limit", "option"

/// One thing found in a file. `message` is one lower-case sentence without a final full stop that a stranger can act
/// on; it already contains what matters of expected and found, and does not name `file`. All texts are exact: what
/// comes from a file may hold control characters, which whoever shows them escapes (escape_for_display()).
struct Finding {
  std::string rule;  ///< stable id: "<format>/<rule>", "limit/<limit>", "io/<what>", "file/<what>", "misuse/<what>"
  Severity severity = Severity::error;  ///< what it means for the file
  Kind kind = Kind::malformed;          ///< of failure, where it is thrown
  FileRef file{};                       ///< which the finding is about; empty: the one that was asked about
  std::optional<std::uint64_t> offset;  ///< byte offset in `file`; none where no single byte is to blame
  std::string tensor;                   ///< name of the tensor concerned; empty where none is
  bool has_tensor = false;              ///< tells the empty name from none
  std::string expected;                 ///< empty, as `found` is, where the rule has no such pair
  std::string found;                    ///< in the units of `expected`
  std::string message;                  ///< the sentence
  Hint hint{};                          ///< what would help
  bool operator==(const Finding&) const = default;
};

/// What a check found, in order: structural findings in the walker's order, then whole-file checksums, then content
/// findings by offset and rule. At most kMaxFindings are kept; `total` counts all.
class Report {
 public:
  static constexpr std::size_t kMaxFindings = 1000;  ///< that are kept

  void add(Finding);           ///< Counts it, and keeps it while there is room.
  void append(const Report&);  ///< All of another report, behind what is here.
  /// Calls change(finding) for each one kept, and for first_error(): for who knows more of them than who found them.
  template <class Change> void amend(Change&& change) {
    for (Finding& finding : findings_) change(finding);
    if (first_error_) change(*first_error_);
  }

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

/// The one error of the library. Copies share one finding, so that copying never throws.
class Error : public std::exception {
 public:
  explicit Error(Finding);                                            ///< From what was found.
  Error(const Error&) noexcept = default;                             ///< Shares the finding; there is no move.
  Error& operator=(const Error&) noexcept = default;                  ///< Shares the finding.
  Kind kind() const noexcept { return finding().kind; }               ///< finding().kind
  const Finding& finding() const noexcept { return held_->finding; }  ///< what was found, where
  /// The finding's message, behind the name of its file where it has one.
  const char* what() const noexcept override { return held_->text.c_str(); }
  /// The same error as one in that file, unless it names one already.
  Error in(std::string_view file) const;

 private:
  struct Held {
    Finding finding;
    std::string text;
  };
  std::shared_ptr<const Held> held_;
};

/// The caller's progress hook asked to stop. Not an Error: nothing is wrong.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }  ///< always "cancelled"
};

}  // namespace weighbridge

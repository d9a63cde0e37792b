// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the library reports what is wrong. Owns Finding, Report, Error (the only error that the library throws) and
/// Cancelled, which is not an error.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge {

/// What kind of failure it is.
enum class Kind : std::uint8_t {
  malformed,    ///< the file breaks a rule
  unsupported,  ///< the file is valid as far as it can be read, but holds what this build cannot interpret
  misuse,       ///< the caller asked for something impossible
  io,           ///< the system failed: unreadable, vanished or truncated file, full disk
  limit         ///< it needs more than the caller's Limits; the file itself may be valid
};
/// What a finding means for the file.
enum class Severity : std::uint8_t {
  error,       ///< it is invalid
  warning,     ///< worth knowing; the file stays valid
  unsupported  ///< one tensor cannot be interpreted
};

std::string_view name(Kind) noexcept;      ///< "malformed", "unsupported", "misuse", "io", "limit"
std::string_view name(Severity) noexcept;  ///< "error", "warning", "unsupported"

/// The file that a finding is about, if it is not the file or folder that was given: a sidecar, a shard, a record, an
/// output.
struct FileRef {
  std::string name{};                                   ///< as Source::name() returns it, for people
  std::optional<std::uint32_t> source{};                ///< its index in Model::sources(), if it is one of them
  bool empty() const noexcept { return name.empty(); }  ///< the file or folder that was given
  bool operator==(const FileRef&) const = default;
};

/// What would help. A front end puts it into its own words: a flag of the command, an option of a call.
struct Hint {
  /// What to set.
  enum class What : std::uint8_t {
    none,    ///< no known setting would help
    limit,   ///< a member of Limits
    option,  ///< an option of what was called, spelled with hyphens: "max-length"
    size,    ///< the file would be whole with `value` bytes
    file     ///< the file `name`, which is missing
  };
  What what = What::none;  ///< which kind of setting
  std::string name{};      ///< of the limit, option or file
  std::string value{};     ///< sufficient value; empty: the caller chooses
  bool operator==(const Hint&) const = default;
};
std::string_view name(Hint::What) noexcept;  ///< "none", "limit", "option", "size", "file"

/// One thing found in a file. `message` is one lower-case sentence without a final full stop. It includes what matters
/// of `expected` and `found`, and does not name `file`. Texts from a file are exact and may hold control characters:
/// escape them for display (escape_for_display()).
struct Finding {
  std::string rule;  ///< stable id: "<format>/<rule>", "limit/<limit>", "io/<what>", "file/<what>", "misuse/<what>"
  Severity severity = Severity::error;  ///< its effect on the file
  Kind kind = Kind::malformed;          ///< of Error, if it is thrown
  FileRef file{};                       ///< the file concerned; empty: the one that was given
  std::optional<std::uint64_t> offset;  ///< byte offset in `file`; nullopt if it is not about one place
  std::string tensor;                   ///< name of the tensor concerned, if any
  bool has_tensor = false;              ///< whether `tensor` is set; a name may be empty
  std::string expected;                 ///< empty, like `found`, if the rule compares nothing
  std::string found;                    ///< in the units of `expected`
  std::string message;                  ///< the sentence
  Hint hint{};                          ///< what would help
  bool operator==(const Finding&) const = default;
};

/// Whether a finding of this rule is about code: something that other programs run, import or compile when they load
/// the file. weighbridge runs none of it.
bool is_about_code(std::string_view rule) noexcept;

/// What a check found, in order: structural findings in the walker's order, then whole-file checksums, then content
/// findings by offset and rule. Keeps at most kMaxFindings; total() counts all.
class Report {
 public:
  static constexpr std::size_t kMaxFindings = 1000;              ///< that are kept
  static constexpr std::size_t kMaxText = std::size_t{4} << 20;  ///< bytes of their texts, beyond which none is kept

  void add(Finding);           ///< Counts it, and keeps it if there is room.
  void append(const Report&);  ///< Appends all findings of another report.
  bool full() const noexcept;  ///< Whether add() would only count.
  /// Calls change(finding) for each kept finding and for first_error(), so that a caller can add what it knows.
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
  /// Of those kept, the findings about code: is_about_code().
  std::uint64_t about_code() const noexcept;
  const Finding* first_error() const noexcept { return first_error_ ? &*first_error_ : nullptr; }  ///< null if valid()

 private:
  std::vector<Finding> findings_;
  std::optional<Finding> first_error_;
  std::uint64_t total_ = 0, errors_ = 0, warnings_ = 0;
  std::size_t text_ = 0;
};

/// The error that the library throws. Copies share one finding, so copying never throws.
class Error : public std::exception {
 public:
  explicit Error(Finding);                                            ///< Wraps a finding.
  Error(const Error&) noexcept = default;                             ///< Shares the finding; there is no move.
  Error& operator=(const Error&) noexcept = default;                  ///< Shares the finding.
  Kind kind() const noexcept { return finding().kind; }               ///< finding().kind
  const Finding& finding() const noexcept { return held_->finding; }  ///< what is wrong, and where
  /// The finding's message, after the name of its file if it has one.
  const char* what() const noexcept override { return held_->text.c_str(); }
  /// The same error with this file, unless it names a file already.
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

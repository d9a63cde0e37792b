// SPDX-License-Identifier: Apache-2.0
// Records: line-oriented files of `key=value` that every step of the chain writes. Owns the grammar, the tables of keys
// that drive parsing and writing, and publishing a record. Leaves the meaning of values to the steps.
//
// GRAMMAR  UTF-8, LF; a line is split at its first '='. Duplicate and unknown keys are errors. Nothing in a value is
//          ever executed or fetched. Limits: 64 KiB per line, 16 MiB per record, 1,000,000 rows per group.
// ROWS     A key of the table with ".N." or ".N" in it occurs once per row, numbered from 0 without gaps:
//          tensor.0.path, tensor.1.path. Keys that are equal up to the "N" form a group and are contiguous.
// TEXTS    A value of type text holds any bytes: \n \r \t \\ as usual, other control characters and bytes that are not
//          UTF-8 as \xHH. get() and set() use the unescaped value.
//
// Below them: the escaped form of a value, and its meaning.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "core/reading/rules.h"
#include "weighbridge/chain.h"
#include "weighbridge/error.h"

namespace weighbridge::chain::internal {

namespace rules {

#define WB_RULES "chain/rules.def"
#include "core/reading/rules.inc"

}  // namespace rules

// A rule by its id without "chain/". A literal that is not in rules.def does not compile.
class RuleName {
 public:
  template <std::size_t Size>
  consteval RuleName(const char (&id)[Size]) : rule_(&find(std::string_view(id, Size - 1))) {}
  const Rule& rule() const noexcept { return *rule_; }

 private:
  static consteval const Rule& find(std::string_view id) {
    for (const Rule& rule : rules::kAll)
      if (rule.id.substr(std::string_view("chain/").size()) == id) return rule;
    throw "rules.def has no rule of this id";
  }
  const Rule* rule_;
};

inline constexpr std::uint64_t kMaxLine = std::uint64_t{64} << 10, kMaxRecord = std::uint64_t{16} << 20,
                               kMaxRows = 1'000'000;

enum class Type : std::uint8_t {
  text,      // any bytes, escaped as above
  word,      // printable ASCII without spaces, at least one character
  choice,    // one of Key::choices
  number,    // u64 in decimal, no sign, no leading zero
  real,      // finite, in the notation of printf and JSON
  boolean,   // true or false
  dims,      // 1 to 4 numbers separated by 'x': 260x8
  digest,    // SHA-256: 64 lower-case hexadecimal digits
  tagged,    // SHA-256 in MiniModel's notation: "sha256:" and 64 upper-case digits
  checksum,  // SLM checksum: 0x and 16 lower-case hexadecimal digits
  time,      // 2026-01-31T12:00:00Z
};
std::string_view name(Type) noexcept;

struct Key {
  std::string_view name;  // with N for the row: "tensor.N.dims"
  Type type = Type::text;
  bool required = true;        // in each row, if the key belongs to rows
  std::string_view choices{};  // "f32|q8_0|q4_0"
  std::string_view about{};    // for the tables of docs/
};
constexpr Key choice_key(std::string_view name, std::string_view choices, std::string_view about) {
  return {name, Type::choice, true, choices, about};
}
constexpr Key optional(Key key) {
  key.required = false;
  return key;
}

struct Schema {
  std::string_view name;  // for messages: "source.manifest"
  std::span<const Key> keys;
  bool comments = false;  // lines that begin with '#' are skipped
  bool crlf = false;      // lines may end in CR LF, all or none
};

class Record {
 public:
  explicit Record(const Schema& schema) : schema_(&schema) {}
  const Schema& schema() const noexcept { return *schema_; }

  // `key` as in a record: "bytes", "tensor.3.dims". Throws std::logic_error for a key that is not in the table and for
  // a value that its type does not allow; both are bugs in the calling step.
  Record& set(std::string_view key, std::string_view value);
  Record& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  Record& set(std::string_view key, std::uint64_t value);
  Record& set_real(std::string_view key, double value);  // shortest decimal that reads back
  Record& set_flag(std::string_view key, bool value);

  bool has(std::string_view key) const noexcept;
  // Empty, 0 or false if it is absent.
  std::string_view get(std::string_view key) const noexcept;
  std::uint64_t number(std::string_view key) const noexcept;
  double real(std::string_view key) const noexcept;
  bool flag(std::string_view key) const noexcept;
  std::vector<std::uint64_t> dims(std::string_view key) const;
  // The number of rows in a group such as "tensor".
  std::uint64_t rows(std::string_view group) const noexcept;

  // Keys and escaped values, in the table's order.
  std::vector<std::pair<std::string, std::string>> lines() const;
  // The record's bytes: lines(), each followed by LF.
  std::string text() const;
  // SHA-256 of text(), 64 lower-case digits.
  std::string digest() const;
  // A JSON object: keys unchanged, values as unescaped texts with U+FFFD for bytes that are not UTF-8.
  std::string json() const;

 private:
  struct Place {
    std::size_t group = 0;  // index of the group's first key in the table
    std::uint64_t row = 0;
    std::size_t key = 0;
    auto operator<=>(const Place&) const = default;
  };
  friend class RecordParser;
  friend bool begins_as(const Schema&, std::string_view);
  std::optional<Place> place(std::string_view key) const noexcept;
  std::string full_key(const Place&) const;

  const Schema* schema_;
  std::map<Place, std::string> values_;  // unescaped
};

Finding finding_of(RuleName, std::string message, std::string expected = {}, std::string found = {});
// Throws a finding of kind malformed with the rule and the offset of the byte at fault. The message names `key` unless
// it is empty.
[[noreturn]] void refuse(RuleName rule, std::string_view key, std::string message,
                         std::optional<std::uint64_t> offset = {}, std::string expected = {}, std::string found = {});

// Throws refuse()'s Error for the first fault. Rules: chain/size, chain/utf8, chain/line, chain/key, chain/duplicate,
// chain/value, chain/missing.
Record parse_record(const Schema&, std::string_view bytes);

struct ReadRecord {
  Record record;
  std::string bytes;   // as read
  std::string sha256;  // of `bytes`, 64 lower-case digits
};
// Reads a regular file of at most `maximum` bytes. Throws the errors of kind io and misuse that open_file() throws.
std::string read_bytes(const std::string& path, std::uint64_t maximum = kMaxRecord);
ReadRecord read_record(const Schema&, const std::string& path);
// The record with these bytes, which are those of `path`.
ReadRecord record_of(const Schema&, const std::string& path, std::string bytes);

// Errors in `work` that refuse the input are reported for the record at `path`.
template <class Work> auto about_record(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (!base::refuses_input(error.kind())) throw;
    throw error.in(path);
  }
}

// True if a file that starts with these bytes is meant as a record of this kind: the first two pairs fit (placeholders
// allowed where people fill them in), even if it is broken further on. An empty file counts as one.
bool begins_as(const Schema&, std::string_view bytes);

// Publishes durably: writes a temporary beside it, syncs, renames. Throws a usage error if the file exists and
// `replace` is off.
void publish(const std::string& path, std::string_view bytes, bool replace);

std::string sha256_hex(std::string_view bytes);
// True for a value still to be filled in, such as "<who trained it>", and for an empty one.
bool is_placeholder(std::string_view value) noexcept;
// True for a text without content: blank, in angle brackets, only punctuation, or one of a few filler words
// (docs/slm/records.md lists them), ignoring invisible characters.
bool says_nothing(std::string_view text);
bool is_time(std::string_view) noexcept;
// The time to state in a record: `given` (a usage error if it is no time), else that of SOURCE_DATE_EPOCH, else none.
// No clock is read, because two runs would then differ.
std::optional<std::string> stated_time(std::string_view given);

// Converts a value of a record between its escaped form and its meaning. Leaves lines and keys to record.h.

// The meaning of an escaped value; nullopt if the key's type does not allow it.
std::optional<std::string> parse_value(const Key&, std::string_view spelled);
// The escaped form of a meaning; nullopt if the key's type does not allow it.
std::optional<std::string> spell_value(const Key&, std::string_view meaning);
// The values that the key's type allows, for a message: "one of f32, q8_0, q4_0".
std::string expectation(const Key&);
std::optional<std::uint64_t> parse_number(std::string_view) noexcept;
std::optional<double> parse_real(std::string_view) noexcept;
// Parses one to four sizes.
std::optional<std::vector<std::uint64_t>> parse_dims(std::string_view);

// The text with U+FFFD for each byte that is not UTF-8, as JSON needs it.
std::string printable(std::string_view text);

// The rules of the chain, from rules.def, and a type that names one by its id.

}  // namespace weighbridge::chain::internal

// SPDX-License-Identifier: Apache-2.0
// Line-oriented records, `key=value` a line: what every step of the chain leaves behind. Owns the grammar, the tables
// of keys that drive parsing and writing, and putting a record on disk. Leaves what the values mean to the steps.
//
// GRAMMAR  UTF-8, LF; a line is split at its first '='. Duplicate and unknown keys are errors. Nothing in a value is
//          ever executed or fetched. Bounds: 64 KiB a line, 16 MiB a record, 1,000,000 rows of one group.
// ROWS     A key of the table with ".N." or ".N" in it stands once for each row, counted from 0 without a gap:
//          tensor.0.path, tensor.1.path. Keys up to the "N" that are the same make one group, and stand together.
// TEXTS    A value of type text holds any bytes: \n \r \t \\ as usual, other control characters and bytes that are no
//          UTF-8 as \xHH. get() and set() take and give what it means, not how it is spelt.
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
#include "chain/rules.h"
#include "weighbridge/chain.h"
#include "weighbridge/error.h"

namespace weighbridge::chain {

inline constexpr std::uint64_t kMaxLine = std::uint64_t{64} << 10, kMaxRecord = std::uint64_t{16} << 20,
                               kMaxRows = 1'000'000;

enum class Type : std::uint8_t {
  text,      // any bytes, spelt as above
  word,      // printable ASCII without a space, at least one
  choice,    // one of Key::choices
  number,    // u64 in decimal, no sign, no leading zero
  real,      // finite, as printf and JSON write it
  boolean,   // true or false
  dims,      // 1 to 4 numbers with 'x' between them: 260x8
  digest,    // SHA-256: 64 lower-case hexadecimal digits
  tagged,    // SHA-256 as MiniModel spells it: "sha256:" and 64 upper-case digits
  checksum,  // SLM checksum: 0x and 16 lower-case hexadecimal digits
  time,      // 2026-01-31T12:00:00Z
};
std::string_view name(Type) noexcept;

struct Key {
  std::string_view name;  // with N for the row: "tensor.N.dims"
  Type type = Type::text;
  bool required = true;        // in each row, where it is one of rows
  std::string_view choices{};  // "f32|q8_0|q4_0"
  std::string_view about{};    // for the tables of docs/
};

struct Schema {
  std::string_view name;  // "source.manifest": for messages
  std::span<const Key> keys;
  bool comments = false;  // lines that begin with '#' are passed over
  bool crlf = false;      // lines may end in CR LF, all or none
};

class Record {
 public:
  explicit Record(const Schema& schema) : schema_(&schema) {}
  const Schema& schema() const noexcept { return *schema_; }

  // `key` as it stands in a record: "bytes", "tensor.3.dims". Throw std::logic_error for a key that the table lacks,
  // and for a value that its type does not allow: both are bugs of the step that writes.
  Record& set(std::string_view key, std::string_view value);
  Record& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  Record& set(std::string_view key, std::uint64_t value);
  Record& set_real(std::string_view key, double value);  // shortest decimal that reads back
  Record& set_flag(std::string_view key, bool value);

  bool has(std::string_view key) const noexcept;
  // Empty, 0 or false where it is absent.
  std::string_view get(std::string_view key) const noexcept;
  std::uint64_t number(std::string_view key) const noexcept;
  double real(std::string_view key) const noexcept;
  bool flag(std::string_view key) const noexcept;
  std::vector<std::uint64_t> dims(std::string_view key) const;
  // Rows of a group: "tensor".
  std::uint64_t rows(std::string_view group) const noexcept;

  // Keys and values, spelt, in the table's order.
  std::vector<std::pair<std::string, std::string>> lines() const;
  // The record's bytes: lines() with LF behind each.
  std::string text() const;
  // SHA-256 of text(), 64 lower-case digits.
  std::string digest() const;
  // A JSON object: keys as they are, values as texts (what they mean, bytes that are no UTF-8 as U+FFFD).
  std::string json() const;

 private:
  struct Place {
    std::size_t group = 0;  // of the table's first key of the group
    std::uint64_t row = 0;
    std::size_t key = 0;
    auto operator<=>(const Place&) const = default;
  };
  friend class RecordParser;
  friend bool begins_as(const Schema&, std::string_view);
  std::optional<Place> place(std::string_view key) const noexcept;
  std::string full_key(const Place&) const;

  const Schema* schema_;
  std::map<Place, std::string> values_;  // what they mean
};

// Finding of kind malformed: the rule, the byte that is to blame; the message names `key` where it is not
// empty.
[[noreturn]] void refuse(RuleName rule, std::string_view key, std::string message,
                         std::optional<std::uint64_t> offset = {}, std::string expected = {}, std::string found = {});

// Throws refuse()'s Error for the first thing that is wrong. Rules: chain/size, chain/utf8, chain/line, chain/key,
// chain/duplicate, chain/value, chain/missing.
Record parse_record(const Schema&, std::string_view bytes);

struct ReadRecord {
  Record record;
  std::string bytes;   // as they stand
  std::string sha256;  // of bytes, 64 lower-case digits
};
// A regular file of at most kMaxRecord bytes. Throws Error of kind io and misuse as open_file() does.
std::string read_bytes(const std::string& path, std::uint64_t most = kMaxRecord);
ReadRecord read_record(const Schema&, const std::string& path);

// What is malformed in `work` is said to be so in the record at `path`.
template <class Work> auto about_record(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (!base::refuses_input(error.kind())) throw;
    throw error.in(path);
  }
}

// Whether these first bytes of a file are those of a record of this kind, which may be broken further on: the first two
// pairs, with placeholders where people fill them in. An empty file is.
bool begins_as(const Schema&, std::string_view bytes);

// As if the power may go: a temporary beside it, synced, then renamed. Misuse: it exists and `replace` is off.
void publish(const std::string& path, std::string_view bytes, bool replace);

std::string sha256_hex(std::string_view bytes);
// A value still to be filled in, "<who trained it>", or an empty one.
bool is_placeholder(std::string_view value) noexcept;
// A sentence of somebody's that says nothing: blank, in angle brackets, punctuation alone, or one of a few words that
// hold a place (docs/slm-chain.md lists them), whatever is around them that cannot be seen.
bool says_nothing(std::string_view text);
bool is_time(std::string_view) noexcept;
// The time that a record is to state: `given` (misuse unless it is one), else SOURCE_DATE_EPOCH's, else none: a clock
// would make two runs differ.
std::optional<std::string> stated_time(std::string_view given);

}  // namespace weighbridge::chain

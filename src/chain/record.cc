// SPDX-License-Identifier: Apache-2.0
// Parsing, formatting and publishing of records.
#include "chain/record.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "base/checked.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "core/model/words.h"
#include "io/atomic_file.h"
#include "io/read.h"
#include "weighbridge/source.h"
#include "wire/json_writer.h"

namespace weighbridge::chain::internal {
namespace {

using core::excerpt;

// The position of the row in a table key: 7 in "tensor.N.dims"; npos if the key has no row.
std::size_t row_at(std::string_view name) noexcept {
  for (std::size_t at = name.find(".N"); at != std::string_view::npos; at = name.find(".N", at + 1))
    if (at + 2 == name.size() || name[at + 2] == '.') return at + 1;
  return std::string_view::npos;
}

std::string_view group_of(std::string_view name) noexcept {
  const std::size_t at = row_at(name);
  return at == std::string_view::npos ? std::string_view{} : name.substr(0, at - 1);
}

// The row of `key` if it matches the table key `name`; else nullopt.
std::optional<std::uint64_t> row_of(std::string_view name, std::string_view key) noexcept {
  const std::size_t at = row_at(name);
  if (at == std::string_view::npos) return key == name ? std::optional<std::uint64_t>(0) : std::nullopt;
  const std::string_view before = name.substr(0, at), behind = name.substr(at + 1);
  if (key.size() <= before.size() + behind.size() || !key.starts_with(before) || !key.ends_with(behind))
    return std::nullopt;
  return parse_number(key.substr(before.size(), key.size() - before.size() - behind.size()));
}

}  // namespace

std::string_view name(Type type) noexcept {
  constexpr std::string_view kNames[] = {"text", "word",   "choice", "number",   "real", "boolean",
                                         "dims", "digest", "tagged", "checksum", "time"};
  return kNames[static_cast<std::size_t>(type)];
}

Finding finding_of(RuleName rule, std::string message, std::string expected, std::string found) {
  Finding out;
  out.rule = rule.rule().id;
  out.message = std::move(message);
  out.expected = std::move(expected);
  out.found = std::move(found);
  return out;
}

void refuse(RuleName rule, std::string_view key, std::string message, std::optional<std::uint64_t> offset,
            std::string expected, std::string found) {
  Finding finding = finding_of(rule, key.empty() ? std::move(message) : std::string(key) + ": " + std::move(message),
                               std::move(expected), std::move(found));
  finding.offset = offset;
  throw Error(std::move(finding));
}

std::optional<Record::Place> Record::place(std::string_view key) const noexcept {
  const auto& keys = schema_->keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = row_of(keys[i].name, key);
    if (!row || *row >= kMaxRows) continue;
    const std::string_view group = group_of(keys[i].name);
    std::size_t first = i;
    if (!group.empty())
      while (first > 0 && group_of(keys[first - 1].name) == group) --first;
    return Place{first, *row, i};
  }
  return std::nullopt;
}

std::string Record::full_key(const Place& place) const {
  const std::string_view name = schema_->keys[place.key].name;
  const std::size_t at = row_at(name);
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at)) + std::to_string(place.row) + std::string(name.substr(at + 1));
}

Record& Record::set(std::string_view key, std::string_view value) {
  const auto found = place(key);
  if (!found) throw std::logic_error(std::string(schema_->name) + " has no key " + std::string(key));
  if (!spell_value(schema_->keys[found->key], value))
    throw std::logic_error(std::string(key) + " cannot be " + std::string(value));
  values_[*found] = value;
  return *this;
}

Record& Record::set(std::string_view key, std::uint64_t value) { return set(key, std::to_string(value)); }
Record& Record::set_flag(std::string_view key, bool value) { return set(key, value ? "true" : "false"); }
Record& Record::set_real(std::string_view key, double value) {
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return set(key, std::string_view(text, static_cast<std::size_t>(end - text)));
}

bool Record::has(std::string_view key) const noexcept {
  const auto found = place(key);
  return found && values_.contains(*found);
}

std::string_view Record::get(std::string_view key) const noexcept {
  const auto found = place(key);
  const auto value = found ? values_.find(*found) : values_.end();
  return value == values_.end() ? std::string_view{} : std::string_view(value->second);
}

std::uint64_t Record::number(std::string_view key) const noexcept { return parse_number(get(key)).value_or(0); }
double Record::real(std::string_view key) const noexcept { return parse_real(get(key)).value_or(0); }
bool Record::flag(std::string_view key) const noexcept { return get(key) == "true"; }
std::vector<std::uint64_t> Record::dims(std::string_view key) const {
  return parse_dims(get(key)).value_or(std::vector<std::uint64_t>{});
}

std::uint64_t Record::rows(std::string_view group) const noexcept {
  std::size_t first = 0;
  while (first < schema_->keys.size() && group_of(schema_->keys[first].name) != group) ++first;
  if (group.empty() || first == schema_->keys.size()) return 0;
  const auto past = values_.lower_bound(Place{first + 1, 0, 0});
  if (past == values_.begin()) return 0;
  const Place& last = std::prev(past)->first;
  return last.group == first ? last.row + 1 : 0;
}

std::vector<std::pair<std::string, std::string>> Record::lines() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [place, value] : values_)
    out.emplace_back(full_key(place), *spell_value(schema_->keys[place.key], value));
  return out;
}

std::string Record::text() const {
  std::string out;
  for (const auto& [key, value] : lines()) {
    out += key;
    out += '=';
    out += value;
    out += '\n';
  }
  return out;
}

std::string Record::digest() const { return sha256_hex(text()); }

std::string Record::json() const {
  wire::JsonWriter out(wire::JsonWriter::Style::shown);
  out.begin_object();
  for (const auto& [place, value] : values_) out.member(full_key(place), printable(value));
  out.end_object();
  return out.take();
}

// Parses one record.
class RecordParser {
 public:
  RecordParser(const Schema& schema, std::string_view bytes) : schema_(schema), bytes_(bytes), record_(schema) {}

  Record run() {
    check_bytes();
    while (at_ < bytes_.size()) take_line();
    check_complete();
    return std::move(record_);
  }

 private:
  std::string article() const { return "a " + std::string(schema_.name); }

  void check_bytes() const {
    if (bytes_.size() > kMaxRecord)
      refuse("size", {}, article() + " has at most 16 MiB, not " + core::bytes_text(bytes_.size()), kMaxRecord);
    if (const std::size_t bad = base::find_invalid_utf8(bytes_); bad != std::string_view::npos)
      refuse("utf8", {}, article() + " is UTF-8, which byte " + std::to_string(bad) + " is not", bad);
    if (!bytes_.empty() && bytes_.back() != '\n')
      refuse("line", {}, "the last line has no end: the record was cut off or edited", bytes_.size());
  }

  void take_line() {
    const std::size_t begin = at_, end = bytes_.find('\n', begin);
    at_ = end + 1;
    std::string_view line = bytes_.substr(begin, end - begin);
    if (line.size() > kMaxLine) refuse("line", {}, "a line has at most 64 KiB", begin);
    const bool returns = line.ends_with('\r');
    if (returns && !schema_.crlf) refuse("line", {}, "lines of " + article() + " end in LF alone, not CR LF", end - 1);
    if (returns_.value_or(returns) != returns) refuse("line", {}, "some lines end in CR LF and some in LF", begin);
    returns_ = returns;
    if (returns) line.remove_suffix(1);
    if (schema_.comments && (line.empty() || line[0] == '#')) return;
    take_pair(begin, line);
  }

  void take_pair(std::size_t begin, std::string_view line) {
    const std::size_t split = line.find('=');
    if (split == std::string_view::npos)
      refuse("line", {}, "a line is key=value, not " + core::quoted(excerpt(line)), begin, "key=value",
             std::string(excerpt(line)));
    const std::string_view key = line.substr(0, split), value = line.substr(split + 1);
    const auto place = record_.place(key);
    if (!place) refuse("key", {}, article() + " has no key " + core::quoted(excerpt(key)), begin, {}, excerpt(key));
    const Key& described = schema_.keys[place->key];
    auto meaning = parse_value(described, value);
    if (!meaning)
      refuse("value", key, "is " + expectation(described) + ", not " + core::quoted(excerpt(value)), begin + split + 1,
             expectation(described), excerpt(value));
    if (!record_.values_.emplace(*place, std::move(*meaning)).second) refuse("duplicate", key, "appears twice", begin);
  }

  // Requires rows without gaps, and all required keys in each.
  void check_complete() const {
    for (std::size_t i = 0; i < schema_.keys.size(); ++i) {
      const Key& key = schema_.keys[i];
      const std::string_view group = group_of(key.name);
      if (!key.required) continue;
      if (group.empty()) {
        if (!record_.has(key.name)) missing(key.name);
        continue;
      }
      const std::size_t first = record_.place(std::string(key.name).replace(row_at(key.name), 1, "0"))->group;
      const std::uint64_t rows = record_.rows(group);
      std::uint64_t held = 0;
      for (auto at = record_.values_.lower_bound({first, 0, 0});
           at != record_.values_.end() && at->first.group == first; ++at) {
        if (at->first.key != i) continue;
        if (at->first.row != held) missing(record_.full_key({first, held, i}));
        ++held;
      }
      if (held < rows) missing(record_.full_key({first, held, i}));
    }
  }
  [[noreturn]] void missing(std::string_view key) const {
    refuse("missing", key, "is missing from the " + std::string(schema_.name), bytes_.size(), std::string(key));
  }

  const Schema& schema_;
  std::string_view bytes_;
  Record record_;
  std::size_t at_ = 0;
  std::optional<bool> returns_{};  // whether lines end in CR LF
};

Record parse_record(const Schema& schema, std::string_view bytes) { return RecordParser(schema, bytes).run(); }

bool begins_as(const Schema& schema, std::string_view bytes) {
  constexpr int kPairs = 2;
  const Record record(schema);
  int seen = 0;
  for (std::size_t at = 0; at < bytes.size() && seen < kPairs;) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    std::string_view line = bytes.substr(at, end - at);
    at = end + 1;
    if (schema.crlf && line.ends_with('\r')) line.remove_suffix(1);
    if (schema.comments && (line.empty() || line[0] == '#')) continue;
    const std::size_t split = line.find('=');
    const auto place = split == std::string_view::npos ? std::nullopt : record.place(line.substr(0, split));
    if (!place || (!schema.comments && seen == 0 && place->key != 0)) return false;
    const Key& key = schema.keys[place->key];
    const std::string_view value = line.substr(split + 1);
    const bool open = schema.comments && is_placeholder(value);
    if (key.type == Type::choice && !open && !parse_value(key, value)) return false;
    ++seen;
  }
  return seen != 0 || bytes.empty();
}

std::string read_bytes(const std::string& path, std::uint64_t maximum) {
  const auto source = open_file(path);
  if (source->size() > maximum)
    refuse("size", {},
           "'" + path + "' has " + core::bytes_text(source->size()) + ", more than the " + core::bytes_text(maximum) +
               " that such a file can have",
           maximum);
  return io::text_of(*source);
}

ReadRecord read_record(const Schema& schema, const std::string& path) {
  return record_of(schema, path, read_bytes(path));
}

ReadRecord record_of(const Schema& schema, const std::string& path, std::string bytes) {
  Record record = about_record(path, [&] { return parse_record(schema, bytes); });
  std::string digest = sha256_hex(bytes);
  return {std::move(record), std::move(bytes), std::move(digest)};
}

void publish(const std::string& path, std::string_view bytes, bool replace) {
  io::AtomicFile file(path, {.replace = replace, .expected_size = bytes.size()});
  file.write_whole(std::as_bytes(std::span(bytes)));
  file.publish();
}

std::string sha256_hex(std::string_view bytes) {
  return codecs::to_hex(codecs::sha256(std::as_bytes(std::span(bytes))));
}

std::optional<std::string> stated_time(std::string_view given) {
  if (!given.empty()) {
    if (!is_time(given)) base::misuse("time", core::quoted(given) + " is not a time like 2026-01-31T12:00:00Z");
    return std::string(given);
  }
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return std::nullopt;
  constexpr std::uint64_t kLast = 253402300799;  // 9999-12-31T23:59:59Z
  const auto seconds = parse_number(epoch);
  if (!seconds || *seconds > kLast)
    base::misuse("time", "SOURCE_DATE_EPOCH is seconds since 1970, not " + core::quoted(epoch));
  const std::chrono::sys_seconds time{std::chrono::seconds(*seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto padded = [](auto number, std::size_t width) {
    const std::string text = std::to_string(number);
    return std::string(width > text.size() ? width - text.size() : 0, '0') + text;
  };
  return padded(static_cast<int>(date.year()), 4) + "-" + padded(static_cast<unsigned>(date.month()), 2) + "-" +
         padded(static_cast<unsigned>(date.day()), 2) + "T" + padded(clock.hours().count(), 2) + ":" +
         padded(clock.minutes().count(), 2) + ":" + padded(clock.seconds().count(), 2) + "Z";
}

}  // namespace weighbridge::chain::internal

namespace weighbridge::chain {

std::span<const Rule> step_rules() noexcept { return internal::rules::kAll; }

}  // namespace weighbridge::chain

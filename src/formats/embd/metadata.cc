// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes the metadata section.
//
//   u32 entries, u32 bytes of all entries | for each entry u16 length of the key, u16 length of the value, key, value
#include "formats/embd/metadata.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/checked.h"
#include "base/endian.h"
#include "base/order.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "core/reading/budget.h"
#include "formats/embd/format.h"

namespace weighbridge::embd {
namespace {

// Memory that one entry takes besides its text. An entry of four bytes needs sixty times its size in memory, so
// Limits::memory applies to entries.
constexpr std::uint64_t kEntryCost = 256;

struct RawEntry {
  std::string_view key, value;
  std::uint64_t at = 0;  // in the file, of the entry
  std::uint64_t value_at() const { return at + kMetadataEntrySize + key.size(); }
};

class MetadataWalk {
 public:
  MetadataWalk(std::string_view section, std::uint64_t offset, const Limits& limits, core::Findings& findings)
      : section_(section), offset_(offset), limits_(limits), findings_(findings) {}

  std::optional<Metadata> run() {
    if (!read_header() || !read_entries()) return std::nullopt;
    return keep();
  }

 private:
  bool read_header() {
    const bool whole = section_.size() >= kMetadataHeaderSize;
    if (whole) header_ = base::load_record<MetadataHeader>(section_.data());
    if (whole && section_.size() == kMetadataHeaderSize + header_.total) return true;
    return findings_.fail(rules::kMetadataSize, {.offset = offset_},
                          core::in_bytes(kMetadataHeaderSize + header_.total), core::in_bytes(section_.size()));
  }

  void report_span(const RawEntry& entry) const {
    const std::uint64_t end = entry.value_at() + entry.value.size(), key_at = entry.at + kMetadataEntrySize;
    if (!findings_.wanted(entry.at, end)) return;
    findings_.span(Span::Kind::entry, entry.at, end, entry.key, core::excerpt(entry.value));
    findings_.fields<MetadataEntry>(entry.at, section_.substr(base::to_size(entry.at - offset_)));
    findings_.span(Span::Kind::field, key_at, entry.value_at(), "key", core::excerpt(entry.key));
    findings_.span(Span::Kind::field, entry.value_at(), end, "value", core::excerpt(entry.value));
  }

  bool read_entries() {
    findings_.fields<MetadataHeader>(offset_, section_);
    const std::uint64_t count = header_.count;
    if (!core::Budget(limits_.memory)
             .keep(findings_, {.offset = offset_}, std::min(count, section_.size() / kMetadataEntrySize), kEntryCost,
                   "the metadata have too many entries to keep"))
      return false;
    std::uint64_t at = kMetadataHeaderSize;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = next(at);
      if (!entry)
        return findings_.fail(rules::kMetadataEntry, {.offset = offset_ + std::min<std::uint64_t>(at, section_.size())},
                              {count, " entries"}, {}, {"entry ", i});
      report_span(*entry);
      entries_.push_back(*entry);
      at += kMetadataEntrySize + entry->key.size() + entry->value.size();
    }
    if (at != section_.size())
      findings_.report(rules::kMetadataRest, {.offset = offset_ + at}, core::in_bytes(at),
                       core::in_bytes(section_.size()));
    return true;
  }

  std::optional<RawEntry> next(std::uint64_t at) const {
    if (!base::fits(at, kMetadataEntrySize, section_.size())) return std::nullopt;
    const auto [key, value] = base::load_record<MetadataEntry>(section_.data() + at);
    const std::size_t text = base::to_size(at + kMetadataEntrySize);
    if (!base::fits(text, std::uint64_t{key} + value, section_.size())) return std::nullopt;
    return RawEntry{section_.substr(text, key), section_.substr(text + key, value), offset_ + at};
  }

  Metadata keep() {
    const std::vector<bool> again = repeated();
    Metadata out;
    out.entries.reserve(entries_.size());
    out.value_at.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const RawEntry& entry = entries_[i];
      const bool key_good = base::is_utf8(entry.key);
      if (!key_good || !base::is_utf8(entry.value)) {
        const std::uint64_t bad = key_good ? entry.value_at() + base::find_invalid_utf8(entry.value)
                                           : entry.at + kMetadataEntrySize + base::find_invalid_utf8(entry.key);
        findings_.report(rules::kMetadataUtf8, {.offset = bad}, {}, {}, {"entry ", i});
      } else if (again[i]) {
        findings_.report(rules::kMetadataKey, {.offset = entry.at}, {}, core::excerpted(entry.key));
      } else {
        out.entries.emplace_back(std::string(entry.key), Value::text(std::string(entry.value)));
        out.value_at.push_back(entry.value_at());
      }
    }
    return out;
  }

  // Which entries repeat the key of an earlier one.
  std::vector<bool> repeated() const {
    std::vector<bool> again(entries_.size());
    for (const auto& [later, first] : base::repeated(again.size(), [&](std::uint32_t i) { return entries_[i].key; }))
      again[later] = true;
    return again;
  }

  const std::string_view section_;
  MetadataHeader header_;
  const std::uint64_t offset_;
  const Limits& limits_;
  core::Findings& findings_;
  std::vector<RawEntry> entries_;
};

}  // namespace

const RequiredKey* find_required(std::string_view key) noexcept {
  const auto found = std::ranges::find(kRequiredKeys, key, &RequiredKey::key);
  return found == std::end(kRequiredKeys) ? nullptr : found;
}

std::optional<std::uint64_t> positive_integer(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

std::size_t Metadata::find(std::string_view key) const noexcept {
  return static_cast<std::size_t>(std::ranges::find(entries, key, &Value::Entry::first) - entries.begin());
}

std::optional<Metadata> read_metadata(std::string_view section, std::uint64_t offset, const Limits& limits,
                                      core::Findings& findings) {
  return MetadataWalk(section, offset, limits, findings).run();
}

std::optional<Numbers> check_required(const Metadata& metadata, std::uint64_t offset, core::Findings& findings) {
  Numbers numbers;
  bool complete = true;
  for (const auto& [key, number] : kRequiredKeys) {
    const std::size_t i = metadata.find(key);
    if (i == metadata.entries.size()) {
      findings.report(rules::kMissingKey, {.offset = offset}, key);
      complete = false;
    } else if (const std::string_view text = *metadata.entries[i].second.as_text(); number != nullptr) {
      const auto value = positive_integer(text);
      if (!value)
        findings.report(rules::kNumber, {.offset = metadata.value_at[i]}, "a positive integer", core::excerpted(text),
                        key);
      complete &= value.has_value();
      numbers.*number = value.value_or(0);
    } else if (key == kCreatedAtKey && !base::is_iso8601(text)) {
      findings.report(rules::kCreatedAt, {.offset = metadata.value_at[i]}, "2025-01-16T12:00:00Z, for one",
                      core::excerpted(text));
    }
  }
  if (!complete) return std::nullopt;
  if (numbers.embedding_dim != numbers.hidden_size)
    findings.report(rules::kEmbeddingDim, {.offset = metadata.value_at[metadata.find("embedding_dim")]},
                    numbers.hidden_size, numbers.embedding_dim);
  if (numbers.hidden_size % numbers.num_attention_heads != 0)
    findings.report(rules::kHeads, {.offset = metadata.value_at[metadata.find("num_attention_heads")]},
                    {"a divisor of ", numbers.hidden_size}, numbers.num_attention_heads);
  return numbers;
}

std::optional<std::string> encode_metadata(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::uint64_t total = 0;
  for (const auto& [key, value] : entries) total += kMetadataEntrySize + key.size() + value.size();
  if (total > UINT32_MAX - kMetadataHeaderSize) return std::nullopt;
  std::string out;
  out.reserve(base::to_size(kMetadataHeaderSize + total));
  base::append_record(out,
                      MetadataHeader{static_cast<std::uint32_t>(entries.size()), static_cast<std::uint32_t>(total)});
  for (const auto& [key, value] : entries) {
    base::append_record(
        out, MetadataEntry{static_cast<std::uint16_t>(key.size()), static_cast<std::uint16_t>(value.size())});
    out += key + value;
  }
  return out;
}

}  // namespace weighbridge::embd

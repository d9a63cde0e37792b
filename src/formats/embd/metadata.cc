// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes the metadata section.
//
//   u32 entries, u32 bytes of all entries | for each entry u16 length of the key, u16 length of the value, key, value
#include "formats/embd/metadata.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "base/order.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "core/reading/budget.h"
#include "formats/embd/architecture.h"
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

// Plans the metadata to write: the ten required keys in the specification's order, with values from the caller, the
// source or the tensors, then the source's other attributes in their order.

using core::indexed;

void check_option(std::string_view key, std::string_view text) {
  if (text.size() > kMaxText || !base::is_utf8(text))
    base::misuse("metadata", std::string(key) + " is to be UTF-8 text of at most " + bytes_text(kMaxText));
}

class MetadataPlanner {
 public:
  MetadataPlanner(const Model& model, const Options& options, core::PlanItems plan_items)
      : model_(model), options_(options), plan_items_(plan_items), derived_(derive(model)) {}

  MetadataPlan run() {
    for (const auto& [key, number] : kRequiredKeys) {
      if (number != nullptr)
        add_number(key, number);
      else
        add_text(key);
    }
    check_numbers();
    for (const auto& [key, value] : model_.attributes()) {
      if (find_required(key) != nullptr || is_header_fact(key, value)) continue;
      if (auto text = text_of(key, value)) out_.entries.emplace_back(key, *std::move(text));
    }
    if (complete_) out_.numbers = numbers_;
    return std::move(out_);
  }

 private:
  void add(std::string_view key, std::string text) { out_.entries.emplace_back(key, std::move(text)); }

  void add_number(std::string_view key, std::uint64_t Numbers::*number) {
    const std::string subject = indexed("attributes", key);
    const Value* const own = model_.attribute(key);
    auto text = own ? text_of(key, *own) : std::nullopt;
    if (!text && derived_.*number == 0) {
      complete_ = false;
      const std::string_view tensor = teller(key);
      plan_items_.block(
          LossKind::attribute, subject, core::kAbsent,
          tensor.empty()
              ? "a key that EMBD requires and that no tensor implies: convert the model's Hugging "
                "Face folder, whose config.json has it"
              : "a key that EMBD requires, and there is no tensor " + std::string(tensor) + " that implies it");
      return;
    }
    if (!text) {
      text = std::to_string(derived_.*number);
      plan_items_.change(LossKind::attribute, subject, core::kAbsent, *text);
    }
    if (const auto value = positive_integer(*text)) {
      numbers_.*number = *value;
    } else {
      complete_ = false;
      plan_items_.block(LossKind::attribute, subject, excerpt(*text), "a positive integer, which EMBD requires");
    }
    add(key, *std::move(text));
  }

  // A key whose value is text: the caller's option, else the source's value, else a default.
  void add_text(std::string_view key) {
    const std::string subject = indexed("attributes", key);
    const std::string& given = option(key);
    check_option(key, given);
    const Value* const own = model_.attribute(key);
    if (!given.empty()) {
      const std::string before = own ? own->to_text() : core::kAbsent;
      if (!own || before != given) plan_items_.change(LossKind::attribute, subject, before, given);
      return add(key, given);
    }
    auto text = own ? text_of(key, *own) : std::nullopt;
    if (!text) {
      text = options_.canonical && key == kCreatedAtKey ? base::utc_time(0) : fallback(key);
      plan_items_.change(LossKind::attribute, subject, core::kAbsent, *text);
    }
    add(key, *std::move(text));
  }

  const std::string& option(std::string_view key) const {
    if (key == kModelName) return options_.metadata.model_name;
    return key == kModelVersion ? options_.metadata.model_version : options_.metadata.created_at;
  }

  static std::string fallback(std::string_view key) {
    if (key == kModelName) return "model";
    return key == kModelVersion ? "1.0.0" : base::reproducible_time();
  }

  void check_numbers() {
    if (!complete_) return;
    if (numbers_.embedding_dim != numbers_.hidden_size)
      plan_items_.block(LossKind::attribute, indexed("attributes", "embedding_dim"),
                        std::to_string(numbers_.embedding_dim),
                        "hidden_size, " + std::to_string(numbers_.hidden_size) + ": EMBD has no projection");
    if (numbers_.hidden_size % numbers_.num_attention_heads != 0)
      plan_items_.block(LossKind::attribute, indexed("attributes", "num_attention_heads"),
                        std::to_string(numbers_.num_attention_heads),
                        "a divisor of hidden_size, " + std::to_string(numbers_.hidden_size));
  }

  // Whether the reader of EMBD adds this attribute, for a header value that the writer would not choose.
  bool is_header_fact(std::string_view key, const Value& value) {
    if (value.kind() != Value::Kind::integer) return false;
    const auto number = value.as_u64();
    if (key == kFlagsAttribute && number && (*number & ~std::uint64_t{kKnownFlags}) == 0) {
      out_.flags = static_cast<std::uint32_t>(*number) & ~kVocabEmbedded;
      return true;
    }
    if (key == kMinorAttribute && number && *number <= UINT16_MAX) {
      out_.version_minor = static_cast<std::uint16_t>(*number);
      return true;
    }
    return false;
  }

  // The text for a value; nullopt, and a loss, if it has none.
  std::optional<std::string> text_of(std::string_view key, const Value& value) {
    const std::string subject = indexed("attributes", key);
    std::string text = value.to_text();
    const auto drop = [&](std::string why) {
      plan_items_.lose(LossKind::attribute, subject, std::move(text), "dropped: " + std::move(why));
      return std::nullopt;
    };
    if (!core::can_be_text(key, value, text)) return drop("it cannot be text");
    if (key.size() > kMaxText || text.size() > kMaxText)
      return drop("EMBD holds texts of up to " + bytes_text(kMaxText));
    if (value.kind() != Value::Kind::text)
      plan_items_.lose(LossKind::attribute_type, subject, core::type_text(value), "text");
    return text;
  }

  const Model& model_;
  const Options& options_;
  core::PlanItems plan_items_;
  const Numbers derived_;  // as derived from the tensors
  Numbers numbers_;
  bool complete_ = true;
  MetadataPlan out_;
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

MetadataPlan plan_metadata(const Model& model, const Options& options, core::PlanItems plan_items) {
  return MetadataPlanner(model, options, plan_items).run();
}

}  // namespace weighbridge::embd

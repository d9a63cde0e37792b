// SPDX-License-Identifier: Apache-2.0
// zTensor 0.1 to Model: the one walker for open and verify. It reads the index in one pass, with keys in any order,
// and hands each tensor's map to the Judge. Maps that break a rule are left out. If the index cannot be read to its
// end, the model is empty.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/checksum.h"
#include "core/reading/rules.h"
#include "formats/ztensor/cbor_walk.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/judge.h"
#include "formats/ztensor/v0/layout.h"
#include "wire/keys.h"

namespace weighbridge::ztensor0 {
namespace {

constexpr std::size_t kShortestEntry = 46;  // of a valid tensor

bool check_magic(const Source& source, core::Findings& findings) {
  std::array<std::byte, kMagicSize> bytes{};
  const auto head = std::span(bytes).first(static_cast<std::size_t>(std::min(source.size(), kMagicSize)));
  if (!head.empty()) source.read_at(0, head);
  const auto magic = std::as_bytes(std::span(kMagic));
  findings.span(Span::Kind::field, 0, head.size(), "magic");
  if (!head.empty() && std::ranges::equal(head, magic.first(head.size()))) return true;
  return findings.fail(rules::kBadMagic, {.offset = 0}, codecs::to_hex(magic), codecs::to_hex(head));
}

// The CBOR of the index, without the size that follows it. nullopt if it cannot be read, which has been reported.
std::optional<core::HeaderMemory> read_index(const Source& source, const Context& context, core::Findings& findings) {
  const std::uint64_t size = source.size();
  const auto fail = [&](const Rule& rule, std::uint64_t at, const core::Said& expected, std::uint64_t found) {
    findings.report(rule, {.offset = at}, expected, found);
    return std::nullopt;
  };
  if (!check_magic(source, findings)) return std::nullopt;
  if (size < kMinFile) return fail(rules::kTooShort, size, core::at_least(kMinFile, " bytes"), size);
  std::array<std::byte, kFooterSize> footer{};
  source.read_at(size - kFooterSize, footer);
  const auto length = base::load_le<std::uint64_t>(footer.data());
  const std::uint64_t at = size - kFooterSize;
  findings.span(Span::Kind::field, at, size, "length of the index", [&] { return std::to_string(length); });
  const std::uint64_t maximum = size - kMagicSize - kFooterSize;
  if (length == 0 || length > maximum) return fail(rules::kIndexRange, at, {"1 to ", maximum}, length);
  if (length > context.limits.header)
    return fail(core::rules::kLimitHeader, at, core::at_most(context.limits.header), length);
  core::HeaderMemory text(length);
  source.read_at(size - kFooterSize - length, text.bytes());
  return text;
}

class Walk : private ztensor::CborWalk {
 public:
  Walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft)
      : CborWalk(source, context, findings, draft, {rules::kTrailing, rules::kCbor}) {}

  void run() {
    draft_.set_format("zt0");
    auto index = read_index(source_, context_, findings_);
    if (!index) return;
    draft_.set_version(kVersion);
    const std::uint64_t begin = source_.size() - kFooterSize - index->text().size();
    enter(std::move(*index), begin, kShortestEntry, "index");
    Judge judge(source_, context_, findings_, draft_, begin);
    judge_ = &judge;
    if (!attempt([this] { walk(); })) return;
    check_names(rules::kDuplicateName);
    judge.check_rest(source_, begin);
  }

 private:
  void walk() {
    if (!in_.enter_array()) {
      need_sound();
      findings_.report(rules::kIndexType, {.offset = at(0)});
      throw Abandon{};
    }
    while (in_.next_element()) {
      count_tensor();
      read_entry();
      judge_->judge(entry_);
      // An entry can be one byte and break six rules, so stop when the report is full (reading G13).
      if (findings_.errors() >= Report::kMaxFindings) throw Abandon{};
      note_name(entry_.name, entry_.texts.empty());
    }
    need_sound();
    finish();
  }

  void read_entry() {
    entry_.clear();
    entry_.at = here();
    if (!in_.enter_map()) {
      need_sound();
      broken(entry_, rules::kEntryType, entry_.at, {});
      pass_items(1);
      return;
    }
    keys_.clear();
    while (in_.next_entry()) {
      const std::size_t key_at = in_.offset();
      std::string_view key;
      if (known_text(key, kName, kOffset, kSize, kDtype, kLayout, kShape, kEncoding, kChecksum) ||
          read_key(entry_, key, rules::kEntryKey))
        read_field(key, key_at);
    }
    need_sound();
    if (const auto twice = wire::first_duplicate(keys_)) report_duplicate(*twice);
  }

  void read_field(std::string_view key, std::size_t key_at) {
    if (key == kName)
      text_field(entry_.name, entry_.has_name, key, key_at);
    else if (key == kOffset)
      number_field(entry_.offset, entry_.has_offset, key, key_at);
    else if (key == kSize)
      number_field(entry_.size, entry_.has_size, key, key_at);
    else if (key == kDtype)
      text_field(entry_.dtype, entry_.has_dtype, key, key_at);
    else if (key == kShape)
      shape_field(key_at);
    else if (key == kEncoding)
      text_field(entry_.encoding, entry_.has_encoding, key, key_at);
    else if (key == kLayout)
      layout_field(key_at);
    else if (key == kChecksum)
      text_field(entry_.checksum, entry_.has_checksum, key, key_at);
    else if (key == kEndianness)
      text_field(entry_.endianness, entry_.has_endianness, key, key_at);
    else
      keep_attribute(key, key_at);
  }

  // Marks a field as seen. If it occurred before, reports it, skips its value and returns false.
  bool is_first(bool& seen, std::size_t key_at) {
    if (!std::exchange(seen, true)) return true;
    report_duplicate(key_at);
    pass_items(1);
    return false;
  }
  void report_duplicate(std::size_t key_at) { broken(entry_, rules::kDuplicateKey, at(key_at), {}); }

  void text_field(std::string_view& out, bool& seen, std::string_view field, std::size_t key_at) {
    if (is_first(seen, key_at)) read_text(entry_, out, rules::kField, field);
  }
  void number_field(std::uint64_t& out, bool& seen, std::string_view field, std::size_t key_at) {
    if (is_first(seen, key_at)) read_number(entry_, out, rules::kField, field);
  }
  void shape_field(std::size_t key_at) {
    if (is_first(entry_.has_shape, key_at)) read_shape(entry_, rules::kField, rules::kRank);
  }

  // Z1: with any value except the three known texts, it is a custom field.
  void layout_field(std::size_t key_at) {
    if (!is_first(entry_.has_layout, key_at) || known_text(entry_.layout, kDense, kSparseCoo, kSparseCsr)) return;
    Value value = keep_value(kLayout.size());
    const auto text = value.as_text();
    if (text && is_layout(*text))  // a known text in chunks
      entry_.layout = *text == kDense ? kDense : *text == kSparseCoo ? kSparseCoo : kSparseCsr;
    else
      entry_.attributes.emplace_back(std::string(kLayout), std::move(value));
  }

  void keep_attribute(std::string_view key, std::size_t key_at) {
    keys_.push_back({key, key_at});
    Value value = keep_value(key.size());
    entry_.attributes.emplace_back(std::string(key), std::move(value));
  }

  // Reads the next value, and counts the memory of its entry.
  Value keep_value(std::size_t key_size) {
    std::optional<std::size_t> duplicate;
    Value value =
        CborWalk::keep_value(key_size, duplicate, "the index has too many custom fields", ztensor::Floats::shortest);
    if (duplicate) report_duplicate(*duplicate);
    return value;
  }

  Judge* judge_ = nullptr;
  Entry entry_;
  std::vector<wire::Key> keys_;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::ztensor0

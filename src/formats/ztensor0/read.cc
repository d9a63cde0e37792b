// SPDX-License-Identifier: Apache-2.0
// zTensor 0.1 to Model: the one walker behind open and verify. It pulls the index's items in one go, whatever the order
// of keys, and hands each tensor's map to the Judge. A map that breaks a rule is left out; an index that cannot be read
// to its end leaves nothing.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/cbor_report.h"
#include "core/cbor_value.h"
#include "core/common_rules.h"
#include "formats/ztensor0/entry.h"
#include "formats/ztensor0/format.h"
#include "formats/ztensor0/index.h"
#include "formats/ztensor0/judge.h"
#include "formats/ztensor0/layout.h"
#include "formats/ztensor0/rules.h"
#include "wire/cbor_reader.h"
#include "wire/keys.h"

namespace weighbridge::ztensor0 {
namespace {

// Recursion over values is as deep as the index nests, so a caller's limit is taken no further.
constexpr std::uint32_t kDeepest = 1000;
// No sound map is shorter than this, so the index's length bounds what is reserved.
constexpr std::size_t kShortestEntry = 46;
// What the index holds makes no sense: reported already.
struct Abandon {};

class Walk {
 public:
  Walk(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft)
      : source_(source), context_(context), findings_(findings), draft_(draft), budget_{context.limits.memory / 4} {}

  void run() {
    draft_.state.format = "zt0";
    auto index = read_index(source_, context_, findings_);
    if (!index) return;
    draft_.state.version = kVersion;
    begin_ = source_.size() - kFooterSize - index->size();
    text_ = draft_.retain_header(std::move(*index));
    Judge judge(context_, findings_, draft_, begin_);
    judge_ = &judge;
    try {
      walk();
    } catch (const Abandon&) {
      draft_.state.tensors.clear();
      draft_.state.parts.clear();
      return;
    }
    check_names();
  }

 private:
  std::uint64_t at(std::size_t offset) const noexcept { return begin_ + offset; }
  std::uint64_t here() const noexcept { return at(in_.offset()); }

  // After a pull that did not do its work: goes on only if the CBOR is sound.
  void need_sound() {
    if (in_.ok()) return;
    core::report_cbor(findings_, in_.error(), begin_, std::min(context_.limits.depth, kDeepest), rules::kTrailing,
                      rules::kCbor);
    throw Abandon{};
  }

  void walk() {
    in_ = wire::CborReader(text_, std::min(context_.limits.depth, kDeepest));
    draft_.state.tensors.reserve(text_.size() / kShortestEntry + 1);
    draft_.state.parts.reserve(text_.size() / kShortestEntry + 1);
    draft_.state.dims.reserve(text_.size() / kShortestEntry + 1);
    if (!in_.enter_array()) {
      need_sound();
      findings_.report(rules::kIndexType, {.offset = begin_});
      throw Abandon{};
    }
    std::uint64_t count = 0;
    while (in_.next_element()) {
      if (++count > context_.limits.tensors) {
        findings_.report(core::rules::kLimitTensors, {.offset = here()},
                         "at most " + std::to_string(context_.limits.tensors));
        throw Abandon{};
      }
      read_entry();
      judge_->judge(entry_);
      // An entry can be one byte and break six rules: what no report keeps is not worth the time (reading G13).
      if (findings_.errors() >= Report::kMaxFindings) throw Abandon{};
      ascending_ = ascending_ && (count == 1 || last_name_ < entry_.name) && entry_.texts.empty();
      last_name_ = entry_.name;
    }
    need_sound();
    in_.finish();
    need_sound();
  }

  // The items that wait, unread.
  void pass_items(int count) {
    while (count-- > 0)
      if (!in_.skip_item()) need_sound();
  }

  std::string_view text_of(const wire::CborString& text) {
    if (!text.indefinite) return text.raw;
    return wire::cbor_text(text, entry_.texts.emplace_back());
  }

  void broken_entry(const Rule& rule, std::uint64_t offset, std::string_view detail, std::string expected = {}) {
    entry_.broken = true;
    findings_.report(rule, {.offset = offset, .tensor = entry_.known_name()}, std::move(expected), {}, detail);
  }
  // A value of the wrong type waits.
  void wrong_type(std::string_view field, const char* expected) {
    need_sound();
    broken_entry(rules::kField, here(), field, expected);
    pass_items(1);
  }

  void read_entry() {
    entry_.clear();
    entry_.at = here();
    if (!in_.enter_map()) {
      need_sound();
      broken_entry(rules::kEntryType, entry_.at, {});
      pass_items(1);
      return;
    }
    keys_.clear();
    while (in_.next_entry()) {
      const std::size_t key_at = in_.offset();
      std::string_view key;
      if (known_text(key, kName, kOffset, kSize, kDtype, kLayout, kShape, kEncoding, kChecksum) || other_key(key))
        read_field(key, key_at);
    }
    need_sound();
    if (const auto twice = wire::first_duplicate(keys_)) report_duplicate(*twice);
  }

  // The text that waits, if it is one of these: what nearly every key of an index is.
  template <class... Texts> bool known_text(std::string_view& out, Texts... texts) {
    return ((in_.accept_text(texts) && (out = texts, true)) || ...);
  }
  // Any other key. False: it is no text, which has been reported, and it and its value were passed.
  bool other_key(std::string_view& out) {
    const std::size_t key_at = in_.offset();
    wire::CborString key;
    if (in_.read_text(key)) {
      out = text_of(key);
      return true;
    }
    need_sound();
    broken_entry(rules::kEntryKey, at(key_at), {});
    pass_items(2);
    return false;
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

  // Marks a field as seen; false, and a finding, when it was seen before: then its value was passed.
  bool fresh(bool& seen, std::size_t key_at) {
    if (!std::exchange(seen, true)) return true;
    report_duplicate(key_at);
    pass_items(1);
    return false;
  }
  void report_duplicate(std::size_t key_at) { broken_entry(rules::kDuplicateKey, at(key_at), {}); }

  void text_field(std::string_view& out, bool& seen, std::string_view field, std::size_t key_at) {
    wire::CborString text;
    if (!fresh(seen, key_at)) return;
    if (in_.read_text(text))
      out = text_of(text);
    else
      wrong_type(field, "text");
  }

  void number_field(std::uint64_t& out, bool& seen, std::string_view field, std::size_t key_at) {
    if (fresh(seen, key_at) && !in_.read_u64(out)) wrong_type(field, "an unsigned integer below 2^64");
  }

  void shape_field(std::size_t key_at) {
    if (!fresh(entry_.has_shape, key_at)) return;
    const std::uint64_t value_at = here();
    if (!in_.enter_array()) {
      wrong_type(kShape, "an array");
      return;
    }
    std::size_t rank = 0;
    bool bad = false;
    while (in_.next_element()) {
      std::uint64_t dim = 0;
      if (in_.read_u64(dim)) {
        if (rank < kMaxRank) entry_.dims[rank] = dim;
        ++rank;
        continue;
      }
      need_sound();
      if (!std::exchange(bad, true)) broken_entry(rules::kField, here(), kShape, "unsigned integers below 2^64");
      pass_items(1);
    }
    need_sound();
    entry_.rank = std::min(rank, kMaxRank);
    if (rank > kMaxRank) broken_entry(rules::kRank, value_at, std::to_string(rank), "at most 64");
  }

  // Z1: of any value but the three known texts it is a custom field like others.
  void layout_field(std::size_t key_at) {
    if (!fresh(entry_.has_layout, key_at) || known_text(entry_.layout, kDense, kSparseCoo, kSparseCsr)) return;
    Value value = keep_value(kLayout.size());
    const auto text = value.as_text();
    if (text && is_layout(*text))  // in chunks
      entry_.layout = *text == kDense ? kDense : *text == kSparseCoo ? kSparseCoo : kSparseCsr;
    else
      entry_.attributes.emplace_back(std::string(kLayout), std::move(value));
  }

  void keep_attribute(std::string_view key, std::size_t key_at) {
    keys_.push_back({key, key_at});
    Value value = keep_value(key.size());
    entry_.attributes.emplace_back(std::string(key), std::move(value));
  }

  // The value that waits, and what its entry costs.
  Value keep_value(std::size_t key_size) {
    const std::size_t value_at = in_.offset();
    std::optional<std::size_t> duplicate;
    Value value = core::read_value(in_, budget_, duplicate, core::Floats::shortest);
    need_sound();
    if (!budget_.take(core::kValueCost + key_size + (in_.offset() - value_at))) {
      findings_.report(core::rules::kLimitMemory, {.offset = at(value_at)}, {}, {},
                       "the index has too many custom fields");
      throw Abandon{};
    }
    if (duplicate) report_duplicate(*duplicate);
    return value;
  }

  void check_names() {
    if (ascending_) {
      auto& index = draft_.state.by_name;
      index.resize(draft_.state.tensors.size());
      std::iota(index.begin(), index.end(), 0U);
      return;
    }
    const auto duplicates = draft_.index_names();
    if (duplicates.empty()) return;
    std::vector<std::uint32_t> later;
    for (const auto& [first, second] : duplicates) {
      const std::string_view name = draft_.state.tensor_name(second);
      core::At where{.tensor = name};
      if (std::less_equal<>{}(text_.data(), name.data()) && std::less<>{}(name.data(), text_.data() + text_.size()))
        where.offset = at(static_cast<std::size_t>(name.data() - text_.data()));
      findings_.report(rules::kDuplicateName, where);
      later.push_back(second);
    }
    draft_.drop(later);
  }

  const Source& source_;
  const Context& context_;
  core::Findings& findings_;
  core::Draft& draft_;
  Judge* judge_ = nullptr;
  std::string_view text_;    // the index
  std::uint64_t begin_ = 0;  // where it starts in the file
  wire::CborReader in_{std::string_view{}};
  core::ValueBudget budget_;
  Entry entry_;
  std::string_view last_name_;  // of the tensor before, in the index
  bool ascending_ = true;       // all names so far, each in one piece
  std::vector<wire::Key> keys_;
};

}  // namespace

void read(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  Walk(source, context, findings, draft).run();
}

}  // namespace weighbridge::ztensor0

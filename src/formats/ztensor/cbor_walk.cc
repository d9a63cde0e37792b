// SPDX-License-Identifier: Apache-2.0
// Walking an index in CBOR: stopping, kept values, shared fields, and names.
#include "formats/ztensor/cbor_walk.h"

#include <functional>
#include <utility>

#include "core/reading/rules.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::ztensor {
namespace {

// Caps the caller's limit, because values are read by recursion as deep as the index nests.
constexpr std::uint32_t kDeepestCbor = 1000;

}  // namespace

std::uint32_t CborWalk::depth() const noexcept { return std::min(context_.limits.depth, kDeepestCbor); }

void CborWalk::enter(HeaderMemory index, std::uint64_t begin, std::size_t shortest, std::string_view what) {
  begin_ = begin;
  text_ = draft_.retain_header(std::move(index));
  findings_.tree(core::Grammar::cbor, Span::Kind::structure, begin, text_, what);
  in_ = wire::CborReader(text_, depth());
  const std::size_t maximum = text_.size() / shortest + 1;
  draft_.reserve(maximum, maximum, maximum);
}

void CborWalk::abandon_broken() {
  const wire::CborError& error = in_.error();
  const core::At where{.offset = at(error.offset)};
  if (error.code == wire::CborErrorCode::too_deep)
    findings_.report(core::rules::kLimitDepth, where, core::at_most(depth()));
  else if (error.code == wire::CborErrorCode::trailing_bytes)
    findings_.report(rules_.trailing, where);
  else
    findings_.report(rules_.broken, where, {}, {}, error.sentence);
  throw Abandon{};
}

void CborWalk::abandon_many() {
  findings_.report(core::rules::kLimitTensors, {.offset = here()}, core::at_most(context_.limits.tensors));
  throw Abandon{};
}

Value CborWalk::keep_value(std::size_t key_size, std::optional<std::size_t>& duplicate, std::string_view too_much,
                           Floats floats) {
  const std::size_t value_at = in_.offset();
  Value value = read_value(in_, budget_, duplicate, floats);
  need_sound();
  if (!budget_.take(kValueCost + key_size + (in_.offset() - value_at))) {
    findings_.report(core::rules::kLimitMemory, {.offset = at(value_at)}, {}, {}, too_much);
    throw Abandon{};
  }
  return value;
}

void CborWalk::broken(CborEntry& entry, const Rule& rule, std::uint64_t at, const Said& detail, const Said& expected,
                      const Said& found) {
  entry.broken = true;
  findings_.report(rule, {.offset = at, .tensor = entry.known_name()}, expected, found, detail);
}

void CborWalk::wrong_type(CborEntry& entry, const Rule& rule, std::string_view field, const char* expected) {
  need_sound();
  broken(entry, rule, here(), field, expected);
  pass_items(1);
}

bool CborWalk::read_key(CborEntry& entry, std::string_view& key, const Rule& rule, std::string_view detail) {
  const std::uint64_t key_at = here();
  wire::CborString text;
  if (in_.read_text(text)) {
    key = text_of(text, entry.texts);
    return true;
  }
  need_sound();
  broken(entry, rule, key_at, detail);
  pass_items(2);
  return false;
}

void CborWalk::read_shape(CborEntry& entry, const Rule& field, const Rule& rank_rule) {
  constexpr std::string_view kShape = "shape";
  const std::uint64_t value_at = here();
  if (!in_.enter_array()) return wrong_type(entry, field, kShape, "an array");
  const std::size_t rank =
      read_dims(entry.dims, [&] { broken(entry, field, here(), kShape, "unsigned integers below 2^64"); });
  entry.rank = std::min(rank, entry.dims.size());
  if (rank > entry.dims.size()) broken(entry, rank_rule, value_at, {}, core::at_most(entry.dims.size()), rank);
}

void CborWalk::report_and_go_on(const Rule& rule, std::uint64_t at, const Said& detail, const Said& expected,
                                const Said& found) {
  findings_.report(rule, {.offset = at}, expected, found, detail);
  reported_ = true;
}

void CborWalk::set_attributes(std::vector<Value::Entry> all) {
  restore_types(all);
  const auto found = std::ranges::find(all, tokenizers::kTokenizerKey, &Value::Entry::first);
  if (found != all.end() && found->second.as_text()) {
    auto tokenizer = tokenizers::tokenizer_from_json(*found->second.as_text());
    if (tokenizer) {  // any other text stays an attribute
      draft_.set_tokenizer(std::move(tokenizer));
      all.erase(found);
    }
  }
  draft_.set_attributes(std::move(all));
}

void CborWalk::check_names(const Rule& duplicate) {
  if (ascending_) {  // as our writers and the published ones write them: the index is the order of the file
    draft_.index_sorted_names();
    return;
  }
  draft_.drop_same_names([&](std::uint32_t, std::uint32_t later) {
    const std::string_view name = draft_.name(later);
    core::At where{.tensor = name};
    if (std::less_equal<>{}(text_.data(), name.data()) && std::less<>{}(name.data(), text_.data() + text_.size()))
      where.offset = at(static_cast<std::size_t>(name.data() - text_.data()));
    findings_.report(duplicate, where);
  });
}

}  // namespace weighbridge::ztensor

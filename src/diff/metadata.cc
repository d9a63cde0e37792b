// SPDX-License-Identifier: Apache-2.0
// Keys in any order; long lists by their length and the first item that differs, so that a vocabulary in the metadata
// is one line.
#include "diff/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/model/words.h"

namespace weighbridge::comparison {
namespace {

constexpr std::size_t kLongest = 200;  // bytes of a text that is shown
constexpr std::size_t kShortList = 16;

std::size_t items_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::list: return value.list().size();
    case Value::Kind::texts: return value.texts()->size();
    case Value::Kind::numbers: return value.bytes().size() * 8 / std::max<std::uint32_t>(info(value.type()).bits, 1);
    default: return 0;
  }
}

std::string text_of(const Value& value) {
  if (const std::size_t items = items_of(value); items > kShortList) return fmt::format("a list of {} items", items);
  if (value.kind() == Value::Kind::bytes && value.bytes().size() > kLongest)
    return core::bytes_text(value.bytes().size());
  return core::excerpt(value.to_text(), kLongest);
}

// The first item in which two lists of the same kind differ.
std::optional<std::uint64_t> first_difference(const Value& a, const Value& b) {
  const std::size_t maximum = std::max(items_of(a), items_of(b)), both = std::min(items_of(a), items_of(b));
  if (a.kind() != b.kind() || maximum == 0 || a.type() != b.type()) return std::nullopt;
  const auto same = [&](std::size_t i) {
    if (a.kind() == Value::Kind::list) return a.list()[i] == b.list()[i];
    if (a.kind() == Value::Kind::texts) return (*a.texts())[i] == (*b.texts())[i];
    const std::size_t width = info(a.type()).bits / 8;
    return width == 0 || std::memcmp(a.bytes().data() + i * width, b.bytes().data() + i * width, width) == 0;
  };
  for (std::size_t i = 0; i < both; ++i)
    if (!same(i)) return i;
  return maximum > both ? std::optional<std::uint64_t>(both) : std::nullopt;
}

bool equal_values(const Value& a, const Value& b, bool exact) {
  if (a == b) return true;
  return !exact && a.to_text() == b.to_text();
}

MetadataDiff changed(std::string key, const Value& a, const Value& b) {
  return {.key = std::move(key), .a = text_of(a), .b = text_of(b), .first = first_difference(a, b)};
}

// Adds what differs. `skips` says which keys only one container can have.
template <class Skips>
void compare_entries(const Attributes& a, const Attributes& b, bool exact, std::string_view tensor, Skips skips,
                     std::vector<MetadataDiff>& out) {
  const auto add = [&](MetadataDiff difference) {
    difference.tensor = tensor;
    out.push_back(std::move(difference));
  };
  for (const auto& [key, value] : a) {
    const Value* const other = b.find(key);
    if (other == nullptr) {
      if (!skips(key)) add({.key = key, .a = text_of(value), .only_a = true});
    } else if (!equal_values(value, *other, exact)) {
      add(changed(key, value, *other));
    }
  }
  for (const auto& [key, value] : b)
    if (a.find(key) == nullptr && !skips(key)) add({.key = key, .b = text_of(value), .only_b = true});
}

}  // namespace

std::vector<MetadataDiff> compare_metadata(const Model& a, const Model& b, bool exact) {
  std::vector<MetadataDiff> out;
  const std::string one = std::string(a.format()) + ".", other = std::string(b.format()) + ".";
  // Fields of a header that is not the other container's.
  const bool same_format = one == other;
  const auto skips = [&](std::string_view key) {
    return !same_format && (key.starts_with(one) || key.starts_with(other));
  };
  compare_entries(a.attributes(), b.attributes(), exact, {}, skips, out);
  if (same_format) compare_entries(a.extra(), b.extra(), exact, {}, skips, out);
  return out;
}

void compare_attributes(const Tensor& a, const Tensor& b, bool exact, bool same_format,
                        std::vector<MetadataDiff>& out) {
  if (!same_format || a.layout() != Layout::dense || b.layout() != Layout::dense) return;
  compare_entries(
      a.attributes(), b.attributes(), exact, a.name(), [](std::string_view) { return false; }, out);
}

std::vector<MetadataDiff> compare_tokenizers(const Model& a, const Model& b) {
  const auto one = a.tokenizer(), other = b.tokenizer();
  std::vector<MetadataDiff> out;
  if (!one && !other) return out;
  const auto describe = [](const Tokenizer& t) { return fmt::format("{}, {} tokens", name(t.kind), t.tokens.size()); };
  if (!one || !other) {
    if (one)
      out.push_back({.key = "tokenizer", .a = describe(*one), .only_a = true});
    else
      out.push_back({.key = "tokenizer", .b = describe(*other), .only_b = true});
    return out;
  }
  const auto differ = [&](std::string key, const std::string& from, const std::string& to,
                          std::optional<std::uint64_t> first = {}) {
    if (from != to) out.push_back({.key = std::move(key), .a = from, .b = to, .first = first});
  };
  differ("kind", std::string(name(one->kind)), std::string(name(other->kind)));
  differ("size", std::to_string(one->vocab_size), std::to_string(other->vocab_size));
  if (one->tokens != other->tokens || one->ids != other->ids) {
    const std::size_t both = std::min(one->tokens.size(), other->tokens.size());
    const auto id = [](const Tokenizer& t, std::size_t i) { return t.ids.empty() ? i : t.ids[i]; };
    std::size_t first = 0, changes = 0;
    for (std::size_t i = both; i-- > 0;)
      if (one->tokens[i] != other->tokens[i] || id(*one, i) != id(*other, i)) first = i, ++changes;
    if (changes == 0) first = both;
    const auto token = [&](const Tokenizer& t) {
      return first < t.tokens.size() ? core::quoted(core::excerpt(t.tokens[first])) : std::string("no token");
    };
    // If the texts of the first one are the same, its ids differ.
    out.push_back({.key = "tokens",
                   .a = fmt::format("{} tokens, {} (id {})", one->tokens.size(), token(*one),
                                    first < one->tokens.size() ? id(*one, first) : first),
                   .b = fmt::format("{} tokens, {} (id {}); {} differ", other->tokens.size(), token(*other),
                                    first < other->tokens.size() ? id(*other, first) : first,
                                    changes + std::max(one->tokens.size(), other->tokens.size()) - both),
                   .first = first});
  }
  if (one->merges != other->merges) {
    const auto [at, unused] =
        std::mismatch(one->merges.begin(), one->merges.end(), other->merges.begin(), other->merges.end());
    out.push_back({.key = "merges",
                   .a = fmt::format("{} merges", one->merges.size()),
                   .b = fmt::format("{} merges", other->merges.size()),
                   .first = static_cast<std::uint64_t>(at - one->merges.begin())});
  }
  std::map<std::string, std::pair<std::string, std::string>> special;
  for (const auto& [role, token] : one->special) special[role].first = std::to_string(token);
  for (const auto& [role, token] : other->special) special[role].second = std::to_string(token);
  for (const auto& [role, ids] : special) {
    if (ids.first == ids.second) continue;
    out.push_back({.key = "special." + role,
                   .a = ids.first,
                   .b = ids.second,
                   .only_a = ids.second.empty(),
                   .only_b = ids.first.empty()});
  }
  return out;
}

}  // namespace weighbridge::comparison

// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes the vocabulary section.
//
//   12 bytes of header | for each token u16 length, bytes | at special_tokens, five u32 ids
#include "formats/embd/vocabulary.h"

#include <algorithm>
#include <tuple>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "core/model/words.h"
#include "core/reading/budget.h"
#include "formats/embd/format.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"

namespace weighbridge::embd {
namespace {

// Memory that a token takes besides its text: the offset of its end. An empty token takes two bytes in the file.
constexpr std::uint64_t kTokenCost = 8;

class VocabularyWalk {
 public:
  VocabularyWalk(std::string_view section, std::uint64_t offset, const Limits& limits, core::Findings& findings)
      : section_(section), offset_(offset), limits_(limits), findings_(findings) {}

  std::optional<Tokenizer> run() {
    const std::uint64_t before = findings_.errors();
    if (!read_header()) return std::nullopt;
    read_tokens();
    read_special();
    if (findings_.errors() != before) return std::nullopt;
    return std::move(out_);
  }

 private:
  bool read_header() {
    if (section_.size() >= kVocabHeaderSize) {
      const auto header = base::load_record<VocabularyHeader>(section_.data());
      std::tie(out_.vocab_size, total_, special_) =
          std::tie(header.vocab_size, header.total_bytes, header.special_tokens);
      findings_.record<VocabularyHeader>(Span::Kind::entry, offset_, section_.substr(0, kVocabHeaderSize),
                                         "vocabulary header");
    }
    if (base::fits(kVocabHeaderSize, total_, section_.size())) return true;
    return findings_.fail(rules::kVocabSize, {.offset = offset_},
                          core::at_least(core::in_bytes(kVocabHeaderSize + total_)), core::in_bytes(section_.size()));
  }

  void read_tokens() {
    const std::uint64_t end = kVocabHeaderSize + total_;
    const std::uint64_t maximum = std::min<std::uint64_t>(out_.vocab_size, total_ / kTokenSize);
    if (!core::Budget(limits_.memory)
             .keep(findings_, {.offset = offset_}, maximum, kTokenCost, "the vocabulary has too many tokens to keep"))
      return;
    out_.tokens.ends.reserve(base::to_size(maximum));
    out_.tokens.blob.reserve(base::to_size(total_ - maximum * kTokenSize));
    std::uint64_t at = kVocabHeaderSize;
    for (std::uint32_t id = 0; id < out_.vocab_size; ++id) {
      const std::uint64_t length =
          base::fits(at, kTokenSize, end) ? base::load_le<std::uint16_t>(section_.data() + at) : 0;
      if (!base::fits(at, kTokenSize + length, end))
        return findings_.report(rules::kVocabToken, {.offset = offset_ + at},
                                {out_.vocab_size, " tokens in ", core::in_bytes(total_)}, {}, {"token ", id});
      const std::string_view token = section_.substr(base::to_size(at + kTokenSize), base::to_size(length));
      if (const std::size_t bad = base::find_invalid_utf8(token); bad != std::string_view::npos)
        findings_.report(rules::kVocabUtf8, {.offset = offset_ + at + kTokenSize + bad}, {}, {}, {"token ", id});
      findings_.span(Span::Kind::entry, offset_ + at, offset_ + at + kTokenSize + length, "token",
                     [&] { return std::to_string(id) + ": " + core::excerpt(token); });
      out_.tokens.push_back(token);
      at += kTokenSize + length;
    }
    if (at != end)
      findings_.report(rules::kVocabRest, {.offset = offset_ + at}, core::in_bytes(at - kVocabHeaderSize),
                       core::in_bytes(total_));
  }

  void read_special() {
    const std::uint64_t first = kVocabHeaderSize + total_;
    const std::uint64_t place = special_ >= offset_ ? special_ - offset_ : 0;
    if (place < first || !base::fits(place, kSpecialSize, section_.size())) {
      const std::string expected =
          section_.size() - first < kSpecialSize
              ? "a section of at least " + bytes_text(first + kSpecialSize)
              : std::to_string(offset_ + first) + " to " + std::to_string(offset_ + section_.size() - kSpecialSize);
      findings_.report(rules::kSpecialPlace, {.offset = offset_ + 8}, expected, special_);
      return;
    }
    check_gap(first, place);
    check_gap(place + kSpecialSize, section_.size());
    for (std::size_t i = 0; i < kSpecial.size(); ++i) {
      const std::uint64_t at = place + 4 * i;
      const auto id = base::load_le<std::uint32_t>(section_.data() + at);
      findings_.span(Span::Kind::field, offset_ + at, offset_ + at + 4, kSpecial[i],
                     [&] { return std::to_string(id); });
      if (id >= out_.vocab_size)
        findings_.report(rules::kSpecialId, {.offset = offset_ + at}, {"below ", out_.vocab_size}, id, kSpecial[i]);
      out_.special.emplace_back(kSpecial[i], id);
    }
  }

  void check_gap(std::uint64_t begin, std::uint64_t end) {
    if (end - begin > kMaxGap)
      findings_.report(rules::kGap, {.offset = offset_ + begin}, {}, core::in_bytes(end - begin), "in the vocabulary");
  }

  const std::string_view section_;
  const std::uint64_t offset_;
  const Limits& limits_;
  core::Findings& findings_;
  std::uint64_t total_ = 0, special_ = 0;
  Tokenizer out_;
};

// The token of each id; empty if the ids are not 0, 1, 2, ... in some order.
std::vector<std::uint32_t> order_of(const Tokenizer& tokenizer) {
  const std::size_t count = tokenizer.tokens.size();
  std::vector<std::uint32_t> order(count, UINT32_MAX);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t id = tokenizer.ids.empty() ? i : tokenizer.ids[i];
    if (id >= count || order[id] != UINT32_MAX) return {};
    order[id] = i;
  }
  return order;
}

std::optional<std::uint32_t> special_of(const Tokenizer& tokenizer, std::string_view name) {
  const auto found = std::ranges::find(tokenizer.special, name, [](const auto& entry) { return entry.first; });
  if (found == tokenizer.special.end()) return std::nullopt;
  return found->second;
}

// Why the format cannot hold the tokens themselves.
std::string obstacle_of(const Tokenizer& tokenizer) {
  const std::size_t count = tokenizer.tokens.size();
  if (tokenizer.kind != Tokenizer::Kind::wordpiece)
    return "EMBD holds wordpiece vocabularies, not " + std::string(name(tokenizer.kind));
  if (!tokenizer.merges.empty()) return "EMBD has no place for merges";
  if (tokenizer.vocab_size != count || (!tokenizer.ids.empty() && tokenizer.ids.size() != count))
    return "EMBD needs a token for each of its " + std::to_string(tokenizer.vocab_size) + " ids";
  for (std::size_t i = 0; i < count; ++i) {
    if (tokenizer.tokens[i].size() > kMaxText) return "a token is longer than " + bytes_text(kMaxText);
    if (!base::is_utf8(tokenizer.tokens[i])) return "a token is not UTF-8";
  }
  return {};
}

}  // namespace

std::optional<Tokenizer> read_vocabulary(std::string_view section, std::uint64_t offset, const Limits& limits,
                                         core::Findings& findings) {
  return VocabularyWalk(section, offset, limits, findings).run();
}

VocabularyPlan plan_vocabulary(const Tokenizer& tokenizer) {
  VocabularyPlan plan;
  plan.obstacle = obstacle_of(tokenizer);
  if (!plan.obstacle.empty()) return plan;
  plan.order = order_of(tokenizer);
  if (plan.order.size() != tokenizer.tokens.size()) {
    plan.obstacle = "the ids of the tokens are not 0, 1, 2, ...";
    return plan;
  }
  for (std::size_t i = 0; i < kSpecial.size(); ++i) {
    auto id = special_of(tokenizer, kSpecial[i]);
    if (!id) {
      const auto found = std::ranges::find(plan.order, kSpecialTokens[i],
                                           [&](std::uint32_t token) { return tokenizer.tokens[token]; });
      if (found != plan.order.end()) {
        id = static_cast<std::uint32_t>(found - plan.order.begin());
        plan.found.push_back(i);
      }
    }
    if (!id || *id >= plan.order.size()) {
      plan.obstacle = "EMBD requires the special token " + std::string(kSpecial[i]);
      return plan;
    }
    plan.special[i] = *id;
  }
  for (const auto& [key, id] : tokenizer.special)
    if (std::ranges::find(kSpecial, key) == kSpecial.end()) plan.dropped.push_back(key);
  return plan;
}

std::optional<std::string> encode_vocabulary(const Tokenizer& tokenizer, const VocabularyPlan& plan,
                                             std::uint64_t offset) {
  const std::uint64_t total = tokenizer.tokens.blob.size() + kTokenSize * plan.order.size();
  const auto end = base::checked_add(offset, kVocabHeaderSize + total + kSpecialSize);
  if (!end || *end > UINT32_MAX) return std::nullopt;
  std::string out;
  out.reserve(base::to_size(*end - offset));
  base::append_record(out,
                      VocabularyHeader{static_cast<std::uint32_t>(plan.order.size()), static_cast<std::uint32_t>(total),
                                       static_cast<std::uint32_t>(offset + kVocabHeaderSize + total)});
  for (const std::uint32_t i : plan.order) {
    base::append_field(out, static_cast<std::uint16_t>(tokenizer.tokens[i].size()));
    out += tokenizer.tokens[i];
  }
  for (const std::uint32_t id : plan.special) base::append_field(out, id);
  return out;
}

}  // namespace weighbridge::embd

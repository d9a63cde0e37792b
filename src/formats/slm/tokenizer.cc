// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes BTOK and BPE1.
#include "base/order.h"
#include "formats/slm/header.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "core/model/words.h"
#include "formats/slm/format.h"

namespace weighbridge::slm_format {
namespace {

class Parser {
 public:
  Parser(std::string_view section, std::uint64_t at, std::uint32_t vocab_size, core::Findings& findings)
      : section_(section), at_(at), vocab_size_(vocab_size), findings_(findings) {}

  std::optional<Tokenizer> run() {
    const std::string_view magic = section_.substr(0, kBtok.size());
    const bool bpe = magic == kBpe1;
    if (magic.size() == kBtok.size() && magic != kBtok && !bpe) return fail(rules::kTokenizerMagic, 0, "BTOK or BPE1");
    const std::uint64_t minimum = bpe ? kBpe1HeaderSize : kBtokSize;
    if (section_.size() < minimum) return fail(rules::kTokenizerShort, 0, {minimum, " bytes"}, section_.size());
    if (u32(4) != kTokenizerVersion) return fail(rules::kTokenizerVersionRule, 4, "1", u32(4));
    out_.vocab_size = u32(8);
    findings_.record<TokenizerHeader>(Span::Kind::entry, at_, section_.substr(0, base::to_size(minimum)),
                                      "tokenizer header");
    if (bpe ? !read_bpe() : !read_btok()) return std::nullopt;
    return std::move(out_);
  }

 private:
  std::uint32_t u32(std::uint64_t at) const noexcept { return base::load_le<std::uint32_t>(section_.data() + at); }

  std::nullopt_t fail(const Rule& rule, std::uint64_t at, const core::Said& expected = {}, const core::Said& found = {},
                      const core::Said& detail = {}) {
    findings_.report(rule, {.offset = at_ + at}, expected, found, detail);
    return std::nullopt;
  }
  bool refuse(const Rule& rule, std::uint64_t at, const core::Said& expected = {}, const core::Said& found = {},
              const core::Said& detail = {}) {
    fail(rule, at, expected, found, detail);
    return false;
  }

  bool check_vocab() {
    return out_.vocab_size == vocab_size_ || refuse(rules::kTokenizerVocab, 8, vocab_size_, out_.vocab_size);
  }

  bool read_btok() {
    out_.kind = Tokenizer::Kind::byte;
    if (out_.vocab_size != kBtokVocab) return refuse(rules::kBtokVocabRule, 8, "260", out_.vocab_size);
    if (!check_vocab()) return false;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t id = u32(12 + 4 * i);
      if (id != kBtokFirstSpecial + i) return refuse(rules::kBtokSpecial, 12 + 4 * i, kBtokFirstSpecial + i, id);
      out_.special.emplace_back(kSpecialNames[i], id);
    }
    return section_.size() == kBtokSize || trailing(kBtokSize);
  }

  bool trailing(std::uint64_t end) {
    return refuse(rules::kTokenizerTrailing, end, {"a section of ", end, " bytes"}, section_.size());
  }

  bool read_bpe() {
    out_.kind = Tokenizer::Kind::bpe;
    if (!check_vocab()) return false;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t id = u32(12 + 4 * i);
      if (id >= out_.vocab_size) return refuse(rules::kSpecialId, 12 + 4 * i, below(), id);
      out_.special.emplace_back(kSpecialNames[i], id);
    }
    const std::uint64_t tokens = u32(28), merges = u32(32);
    // A token record takes at least 9 bytes, so counts that pass cannot drive a loop past the section.
    if (tokens * (kTokenRecordSize + 1) + merges * kMergeRecordSize > section_.size() - kBpe1HeaderSize)
      return refuse(rules::kTokenizerCounts, 28, {}, {tokens, " tokens and ", merges, " merges"},
                    {section_.size(), " bytes"});
    return read_tokens(tokens) && read_merges(merges) && (position_ == section_.size() || trailing(position_));
  }

  std::string below() const { return "below " + std::to_string(out_.vocab_size); }

  bool read_tokens(std::uint64_t count) {
    std::vector<std::uint32_t> ids(base::to_size(count));
    std::vector<std::uint64_t> places(ids.size());
    out_.tokens.ends.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint64_t at = places[i] = position_;
      if (!base::fits(at, kTokenRecordSize, section_.size())) return refuse(rules::kTokenRecord, at);
      const std::uint32_t id = ids[i] = u32(at), length = u32(at + 4);
      if (id >= out_.vocab_size) return refuse(rules::kTokenId, at, below(), id);
      if (length == 0) return refuse(rules::kEmptyToken, at + 4, {}, {}, {"the token ", id});
      if (!base::fits(at + kTokenRecordSize, length, section_.size()))
        return refuse(rules::kTokenRecord, at + 4, {}, {length, " bytes"}, {"the token ", id});
      out_.tokens.push_back(section_.substr(base::to_size(at + kTokenRecordSize), length));
      findings_.span(Span::Kind::entry, at_ + at, at_ + at + kTokenRecordSize + length, "token", [&] {
        return std::to_string(id) + ": " + core::excerpt(section_.substr(base::to_size(at + kTokenRecordSize), length));
      });
      position_ += kTokenRecordSize + length;
    }
    sorted_ = ids;
    std::ranges::sort(sorted_);
    if (const auto twice = std::ranges::adjacent_find(sorted_); twice != sorted_.end()) {
      const auto first = std::ranges::find(ids, *twice);
      const auto second = std::find(first + 1, ids.end(), *twice) - ids.begin();
      return refuse(rules::kDuplicateTokenId, places[static_cast<std::size_t>(second)], {}, *twice);
    }
    // Ids 0, 1, 2, ... are implied.
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != i) {
        out_.ids = std::move(ids);
        break;
      }
    return true;
  }

  bool read_merges(std::uint64_t count) {
    if (!base::fits(position_, count * kMergeRecordSize, section_.size()))
      return refuse(rules::kTokenRecord, position_);
    out_.merges.reserve(base::to_size(count));
    const std::uint64_t first = position_;
    for (; out_.merges.size() < count; position_ += kMergeRecordSize) {
      const Tokenizer::Merge merge{u32(position_), u32(position_ + 4), u32(position_ + 8), u32(position_ + 12)};
      findings_.span(Span::Kind::entry, at_ + position_, at_ + position_ + kMergeRecordSize, "merge", [&] {
        return std::to_string(merge.left) + " and " + std::to_string(merge.right) + " to " +
               std::to_string(merge.output) + ", rank " + std::to_string(merge.rank);
      });
      for (const std::uint32_t id : {merge.left, merge.right, merge.output})
        if (id >= out_.vocab_size) return refuse(rules::kMergeId, position_, below(), id);
      if (!std::ranges::binary_search(sorted_, merge.output))
        return refuse(rules::kMergeOutput, position_ + 8, {}, merge.output);
      out_.merges.push_back(merge);
    }
    warn_repeated(first);
    return true;
  }

  // Reports all repeated merges in one finding.
  void warn_repeated(std::uint64_t first) {
    const auto repeated = base::repeated(
        out_.merges.size(), [&](std::uint32_t i) { return std::pair(out_.merges[i].left, out_.merges[i].right); });
    if (repeated.empty()) return;
    const std::uint64_t earliest = repeated.front().first;
    const Tokenizer::Merge& merge = out_.merges[repeated.front().first];
    findings_.report(rules::kRepeatedMerge, {.offset = at_ + first + earliest * kMergeRecordSize}, {},
                     {repeated.size(), (repeated.size() == 1 ? " repetition" : " repetitions")},
                     {"the first is ", merge.left, " + ", merge.right});
  }

  std::string_view section_;
  std::uint64_t at_, position_ = kBpe1HeaderSize;
  std::uint32_t vocab_size_;
  core::Findings& findings_;
  Tokenizer out_;
  std::vector<std::uint32_t> sorted_;  // the sorted ids of the token records
};

const std::uint32_t* special_id(const Tokenizer& tokenizer, std::string_view name) noexcept {
  for (const auto& [known, id] : tokenizer.special)
    if (known == name) return &id;
  return nullptr;
}

}  // namespace

std::optional<Tokenizer> parse_tokenizer(std::string_view section, std::uint64_t at, std::uint32_t vocab_size,
                                         core::Findings& findings) {
  return Parser(section, at, vocab_size, findings).run();
}

std::string encode_btok() {
  std::string out(kBtok);
  base::append_fields(out, kTokenizerVersion, kBtokVocab);
  for (std::uint32_t i = 0; i < 4; ++i) base::append_field(out, kBtokFirstSpecial + i);
  return out;
}

Tokenizer byte_tokenizer() {
  Tokenizer out;
  out.kind = Tokenizer::Kind::byte;
  out.vocab_size = kBtokVocab;
  for (std::uint32_t i = 0; i < 4; ++i) out.special.emplace_back(kSpecialNames[i], kBtokFirstSpecial + i);
  return out;
}

std::string encode_bpe1(const Tokenizer& tokenizer) {
  std::string out(kBpe1);
  base::append_fields(out, kTokenizerVersion, tokenizer.vocab_size);
  for (const std::string_view name : kSpecialNames) {
    const std::uint32_t* const id = special_id(tokenizer, name);
    base::append_field(out, id ? *id : UINT32_MAX);
  }
  const auto size = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  base::append_fields(out, size(tokenizer.tokens), size(tokenizer.merges));
  for (std::size_t i = 0; i < tokenizer.tokens.size(); ++i) {
    const std::string_view token = tokenizer.tokens[i];
    base::append_fields(out, tokenizer.ids.empty() ? static_cast<std::uint32_t>(i) : tokenizer.ids[i], size(token));
    out += token;
  }
  for (const Tokenizer::Merge& m : tokenizer.merges) base::append_fields(out, m.left, m.right, m.output, m.rank);
  return out;
}

EncodedTokenizer encode_tokenizer(const Tokenizer& tokenizer, std::uint32_t vocab_size) {
  EncodedTokenizer out;
  if (tokenizer.kind == Tokenizer::Kind::wordpiece) {
    out.problem = "an .slm holds byte and BPE tokenizers only";
    return out;
  }
  if (!tokenizer.ids.empty() && tokenizer.ids.size() != tokenizer.tokens.size()) {
    out.problem = "it does not have one id for each token";
    return out;
  }
  Tokenizer whole = tokenizer;
  if (tokenizer.kind == Tokenizer::Kind::byte) {
    if (!tokenizer.tokens.size() && tokenizer.merges.empty() && tokenizer == byte_tokenizer())
      out.section = encode_btok();
    else
      out.problem = "a byte tokenizer of an .slm has a vocabulary of 260 and the special ids 256 to 259";
  } else {
    for (const std::string_view name : {"bos", "eos", "unk"})
      if (out.problem.empty() && !special_id(whole, name))
        out.problem = "it lacks the special token " + std::string(name);
    if (out.problem.empty() && !special_id(whole, "pad"))
      whole.special.emplace_back("pad", *special_id(whole, "unk"));  // M14
    if (out.problem.empty()) out.section = encode_bpe1(whole);
  }
  if (!out.problem.empty()) return out;
  // The reader checks the rest.
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  parse_tokenizer(out.section, 0, vocab_size, findings);
  if (const Finding* error = report.first_error()) out.problem = error->message;
  return out;
}

}  // namespace weighbridge::slm_format

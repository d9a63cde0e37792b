// SPDX-License-Identifier: Apache-2.0
// The public WordPiece: checks the vocabulary, adds [CLS] and [SEP], truncates, and converts offsets to code points.
// Leaves the text itself to wordpiece.cc.
#include "weighbridge/tokenize.h"
#include "base/checked.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "tokenizers/characters.h"
#include "tokenizers/wordpiece.h"

namespace weighbridge {
namespace {

struct Role {
  std::string_view name, spelling;
};
constexpr Role kRoles[] = {{"pad", "[PAD]"}, {"unk", "[UNK]"}, {"cls", "[CLS]"}, {"sep", "[SEP]"}, {"mask", "[MASK]"}};
constexpr std::size_t kUnknown = 1, kBegin = 2, kEnd = 3;

void check(const Tokenizer& from, const WordPieceOptions& options) {
  if (options.word_limit == 0 || options.word_limit > tokenizers::kMaxWordLimit)
    base::misuse("word-limit", "a limit of " + std::to_string(options.word_limit) +
                                   " characters a word, and it can be 1 to " +
                                   std::to_string(tokenizers::kMaxWordLimit));
  if (from.kind != Tokenizer::Kind::wordpiece)
    base::malformed("tokenizer/kind",
                    "the tokenizer is of kind " + std::string(name(from.kind)) + ", and wordpiece is needed");
  if (!from.ids.empty() && from.ids.size() != from.tokens.size())
    base::malformed("tokenizer/ids", "the vocabulary has " + std::to_string(from.tokens.size()) + " tokens and " +
                                         std::to_string(from.ids.size()) + " ids");
  if (from.tokens.size() >= std::numeric_limits<std::uint32_t>::max())
    base::malformed("tokenizer/size", "the vocabulary has more tokens than ids of 32 bits can tell apart");
  for (const std::uint32_t id : from.ids)
    if (id == std::numeric_limits<std::uint32_t>::max())
      base::malformed("tokenizer/ids", "the vocabulary uses the id 4294967295, which is kept for none");
}

// The tokens sorted by id; of equal ids the last wins.
std::vector<tokenizers::Vocabulary::Entry> by_id(const Texts& tokens, std::span<const std::uint32_t> ids) {
  std::vector<tokenizers::Vocabulary::Entry> out;
  out.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    out.push_back({tokens[i], ids.empty() ? static_cast<std::uint32_t>(i) : ids[i]});
  if (!ids.empty()) std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

using Specials = std::vector<std::pair<std::string, std::uint32_t>>;

// The id of each role: the one the vocabulary names, else the token in BERT's spelling.
std::vector<std::optional<std::uint32_t>> roles(const Specials& named,
                                                std::span<const tokenizers::Vocabulary::Entry> entries) {
  std::vector<std::optional<std::uint32_t>> out(std::size(kRoles));
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const auto& [role, id] : named)
      if (role == kRoles[i].name) out[i] = id;
  std::vector<std::optional<std::uint32_t>> spelt(out.size());
  for (const auto& entry : entries)
    for (std::size_t i = 0; i < out.size(); ++i)
      if (entry.token == kRoles[i].spelling) spelt[i] = entry.id;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i]) out[i] = spelt[i];
  for (const std::size_t i : {kUnknown, kBegin, kEnd})
    if (!out[i])
      base::malformed("tokenizer/special", "the vocabulary has no token " + std::string(kRoles[i].spelling) +
                                               " and names none for \"" + std::string(kRoles[i].name) + "\"");
  return out;
}

}  // namespace

struct WordPiece::Rep {
  Rep(const Tokenizer& from, const WordPieceOptions& wanted)
      : options(wanted),
        texts(from.tokens),
        entries(by_id(texts, from.ids)),
        special(roles(from.special, entries)),
        rules(entries, spelt(), *special[kUnknown], options) {}

  // The texts of the special tokens.
  std::vector<tokenizers::Special> spelt() const {
    std::vector<tokenizers::Special> out;
    for (std::size_t i = 0; i < special.size(); ++i) {
      if (!special[i]) continue;
      const auto text = token(*special[i]);
      if (!text) continue;
      if (text->size() > tokenizers::kMaxSpecial)
        base::malformed("tokenizer/special", "the special token for \"" + std::string(kRoles[i].name) + "\" has " +
                                                 std::to_string(text->size()) + " bytes, more than " +
                                                 std::to_string(tokenizers::kMaxSpecial));
      out.push_back({std::string(*text), *special[i]});
    }
    return out;
  }

  std::optional<std::string_view> token(std::uint32_t id) const noexcept {
    const auto after =
        std::upper_bound(entries.begin(), entries.end(), id, [](std::uint32_t a, const auto& b) { return a < b.id; });
    if (after == entries.begin() || std::prev(after)->id != id) return std::nullopt;
    return std::prev(after)->token;
  }

  const WordPieceOptions options;
  const Texts texts;
  const std::vector<tokenizers::Vocabulary::Entry> entries;  // sorted by id; views into texts
  const std::vector<std::optional<std::uint32_t>> special;   // one per entry of kRoles
  const tokenizers::Rules rules;
};

WordPiece::WordPiece(const Tokenizer& from, const WordPieceOptions& options) {
  check(from, options);
  rep_ = std::make_shared<const Rep>(from, options);
}

Tokenizer WordPiece::vocabulary(std::string_view vocab_txt) {
  if (const std::size_t at = base::find_invalid_utf8(vocab_txt); at != std::string_view::npos) {
    Finding finding;
    finding.rule = "tokenizer/utf8";
    finding.offset = at;
    finding.message = "the vocabulary is not valid UTF-8";
    throw Error(std::move(finding));
  }
  Tokenizer out;
  while (!vocab_txt.empty()) {
    const std::size_t end = std::min(vocab_txt.find('\n'), vocab_txt.size());
    std::string_view line = vocab_txt.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.tokens.push_back(line);
    vocab_txt.remove_prefix(std::min(end + 1, vocab_txt.size()));
  }
  out.vocab_size =
      static_cast<std::uint32_t>(std::min<std::size_t>(out.tokens.size(), std::numeric_limits<std::uint32_t>::max()));
  for (const Role& role : kRoles)
    for (std::size_t i = out.tokens.size(); i-- > 0;)  // of equal tokens the last wins
      if (out.tokens[i] == role.spelling) {
        out.special.emplace_back(role.name, static_cast<std::uint32_t>(i));
        break;
      }
  return out;
}

namespace {

// The longest line in bytes; no real token comes near it.
constexpr std::size_t kLongestToken = 4096;
// The memory that one token costs in all tables, besides its bytes.
constexpr std::uint64_t kTokenCost = 128;

// Limits the memory: a vocabulary of empty lines, or of one long line, would cost many times its size.
void check_cost(std::string_view vocab_txt, const Limits& limits) {
  std::uint64_t lines = 0;
  for (std::size_t at = 0; at < vocab_txt.size(); ++lines) {
    const std::size_t end = std::min(vocab_txt.find('\n', at), vocab_txt.size());
    if (end - at > kLongestToken) {
      Finding finding;
      finding.rule = "tokenizer/token";
      finding.offset = at;
      finding.message = "line " + std::to_string(lines + 1) + " of the vocabulary has " + std::to_string(end - at) +
                        " bytes: a token has at most " + std::to_string(kLongestToken);
      throw Error(std::move(finding));
    }
    at = end + 1;
  }
  if (lines > limits.memory / kTokenCost)
    base::over_limit("memory", "the vocabulary has " + std::to_string(lines) + " tokens, more than the limit allows",
                     lines * kTokenCost);
}

}  // namespace

Tokenizer WordPiece::vocabulary(const Source& vocab_txt, const Limits& limits) {
  if (vocab_txt.size() > limits.header)
    base::over_limit("header", "the vocabulary is larger than the limit allows", vocab_txt.size());
  std::string text(base::to_size(vocab_txt.size()), '\0');
  vocab_txt.read_at(0, std::as_writable_bytes(std::span(text)));
  check_cost(text, limits);
  return vocabulary(text);
}

Encoded WordPiece::encode(std::string_view text, std::span<std::uint32_t> ids, const EncodeOptions& options,
                          std::span<TokenSpan> spans) const {
  if (!spans.empty() && spans.size() < ids.size())
    base::misuse("spans",
                 "room for " + std::to_string(spans.size()) + " spans and " + std::to_string(ids.size()) + " ids");
  std::size_t room = ids.size();
  if (options.max_length != 0) room = base::to_size(std::min<std::uint64_t>(room, options.max_length));
  if (options.special && room < 2)
    base::misuse("max-length", "no room for [CLS] and [SEP]: the length is at most " + std::to_string(room));
  const std::size_t around = options.special ? 1 : 0;
  const auto within = ids.subspan(around, room - 2 * around);
  TokenSpan* const places = spans.empty() ? nullptr : spans.data() + around;
  Encoded out = tokenizers::tokenize(rep_->rules, text, within, places);
  if (!options.special) return out;
  ids[0] = *rep_->special[kBegin];
  const std::size_t end = base::to_size(out.count) + 1;
  ids[end] = *rep_->special[kEnd];
  if (!spans.empty()) spans[0] = spans[end] = {};
  out.count += 2;
  return out;
}

std::vector<std::uint32_t> WordPiece::encode(std::string_view text, const EncodeOptions& options) const {
  std::uint64_t room = bound(text.size());
  if (options.max_length != 0) room = std::min(room, options.max_length);
  std::vector<std::uint32_t> ids(base::to_size(room));
  ids.resize(base::to_size(encode(text, ids, options).count));
  return ids;
}

void WordPiece::to_code_points(std::string_view text, std::span<TokenSpan> spans) noexcept {
  // Begins and ends both ascend, so one walk along the text suffices for each.
  const auto walk = [text](std::span<TokenSpan> over, std::uint64_t TokenSpan::*field) {
    std::size_t bytes = 0, characters = 0;
    for (TokenSpan& span : over) {
      if (span.*field < bytes) {  // only the final [SEP] goes back, to 0
        span.*field = 0;
        continue;
      }
      while (bytes < span.*field && bytes < text.size()) {
        bytes += tokenizers::decode_replacing(text, bytes).length;
        ++characters;
      }
      span.*field = characters;
    }
  };
  walk(spans, &TokenSpan::begin);
  walk(spans, &TokenSpan::end);
}

std::optional<std::string_view> WordPiece::token(std::uint32_t id) const noexcept { return rep_->token(id); }

std::uint32_t WordPiece::size() const noexcept { return rep_->entries.empty() ? 0 : rep_->entries.back().id + 1; }

std::optional<std::uint32_t> WordPiece::special(std::string_view role) const noexcept {
  for (std::size_t i = 0; i < std::size(kRoles); ++i)
    if (role == kRoles[i].name) return rep_->special[i];
  return std::nullopt;
}

const WordPieceOptions& WordPiece::options() const noexcept { return rep_->options; }

}  // namespace weighbridge

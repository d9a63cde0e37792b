// SPDX-License-Identifier: Apache-2.0
// The public WordPiece: checks the vocabulary, adds [CLS] and [SEP], truncates, and converts offsets to code points.
// Leaves the text itself to wordpiece.cc.
#include "weighbridge/tokenize.h"
#include "base/checked.h"
#include "io/read.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/words.h"
#include "core/reading/encoder_settings.h"
#include "tokenizers/characters.h"
#include "tokenizers/steps.h"
#include "tokenizers/tokenizer_rules.h"
#include "tokenizers/wordpiece.h"

namespace weighbridge {
namespace {

struct Role {
  std::string_view name, spelling;
};
constexpr Role kRoles[] = {{"pad", "[PAD]"}, {"unk", "[UNK]"}, {"cls", "[CLS]"}, {"sep", "[SEP]"}, {"mask", "[MASK]"}};
constexpr std::size_t kPad = 0, kUnknown = 1, kBegin = 2, kEnd = 3;
// The beginnings of tokens that Hugging Face's decoder puts no space before.
constexpr std::string_view kClose[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};

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
                                                std::span<const tokenizers::Vocabulary::Entry> entries, bool framed) {
  std::vector<std::optional<std::uint32_t>> out(std::size(kRoles));
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const auto& [role, id] : named)
      if (role == kRoles[i].name) out[i] = id;
  std::vector<std::optional<std::uint32_t>> spelled(out.size());
  for (const auto& entry : entries)
    for (std::size_t i = 0; i < out.size(); ++i)
      if (entry.token == kRoles[i].spelling) spelled[i] = entry.id;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i]) out[i] = spelled[i];
  for (const std::size_t i : {kUnknown, kBegin, kEnd})
    if (!out[i] && (i == kUnknown || !framed))
      base::malformed("tokenizer/special", "the vocabulary has no token " + std::string(kRoles[i].spelling) +
                                               " and names none for \"" + std::string(kRoles[i].name) + "\"");
  return out;
}

}  // namespace

namespace {

tokenizers::TokenizerRules rules_of(const WordPieceOptions& options) {
  if (options.rules.empty()) return {};
  auto rules = tokenizers::parse_tokenizer_rules(options.rules);
  if (!rules)
    base::malformed("tokenizer/rules", "the rules of the tokenizer are " + core::quoted(core::excerpt(options.rules)) +
                                           ", which are no rules");
  return *std::move(rules);
}

void refuse(const std::vector<tokenizers::RefusedSetting>& refused, const WordPieceOptions& options) {
  for (const tokenizers::RefusedSetting& each : refused) {
    if (core::passes(options.ignore_settings, {"tokenizer.json", each.key, each.value})) continue;
    Finding finding;
    finding.rule = "tokenizer/setting";
    finding.kind = Kind::unsupported;
    finding.message =
        "the tokenizer's setting " + core::quoted(each.key) + " is " + core::excerpt(each.value, 80) + ": " + each.why;
    finding.hint = base::option_hint("ignore-setting", each.key);
    throw Error(std::move(finding));
  }
}

}  // namespace

struct WordPiece::Rep {
  Rep(const Tokenizer& from, const WordPieceOptions& wanted) : Rep(from, wanted, rules_of(wanted)) {}
  Rep(const Tokenizer& from, const WordPieceOptions& wanted, const tokenizers::TokenizerRules& said)
      : options(wanted),
        texts(from.tokens),
        entries(by_id(texts, from.ids)),
        special(roles(from.special, entries, said.frame.has_value())),
        prefix(said.prefix.value_or(std::string(tokenizers::Vocabulary::kPrefix))),
        frame(said.frame.value_or(tokenizers::TextFrame{})) {
    if (!said.frame) frame = {{*special[kBegin]}, {*special[kEnd]}};
    for (const std::vector<std::uint32_t>* const ids : {&frame.before, &frame.after})
      for (const std::uint32_t id : *ids)
        if (!token(id))
          base::malformed("tokenizer/special",
                          "the id " + std::to_string(id) + " goes around a text, and is not in the vocabulary");
    const std::vector<tokenizers::AddedText> added = added_of(said);
    const auto words = words_of(added);
    if (is_berts(said, added)) {
      std::vector<tokenizers::Special> found;
      for (const auto& each : added) found.push_back({each.text, each.token.id});
      WordPieceOptions now = options;
      now.word_limit = said.word_limit.value_or(options.word_limit);
      rules.emplace(words, std::move(found), *special[kUnknown], now);
    } else {
      steps.emplace(words, added, settings_of(said));
    }
  }

  // The tokens that texts are searched for: those of the rules, else the special ones.
  std::vector<tokenizers::AddedText> added_of(const tokenizers::TokenizerRules& said) const {
    std::vector<tokenizers::AddedToken> tokens;
    if (said.added) tokens = *said.added;
    for (std::size_t i = 0; i < special.size() && !said.added; ++i)
      if (special[i]) tokens.push_back({.id = *special[i]});
    std::vector<tokenizers::AddedText> out;
    for (const tokenizers::AddedToken& each : tokens) {
      const auto text = token(each.id);
      if (!text && said.added)
        base::malformed("tokenizer/added", "the added token " + std::to_string(each.id) + " is not in the vocabulary");
      if (!text) continue;
      if (text->size() > tokenizers::kMaxSpecial)
        base::malformed("tokenizer/special", "the special token " + core::quoted(core::excerpt(*text)) + " has " +
                                                 std::to_string(text->size()) + " bytes, more than " +
                                                 std::to_string(tokenizers::kMaxSpecial));
      out.push_back({each, std::string(*text)});
    }
    return out;
  }

  // What words are made of.
  std::vector<tokenizers::Vocabulary::Entry> words_of(const std::vector<tokenizers::AddedText>& added) const {
    std::vector<std::uint32_t> others;
    for (const auto& each : added)
      if (!each.token.of_vocabulary) others.push_back(each.token.id);
    std::ranges::sort(others);
    auto out = entries;
    std::erase_if(out, [&](const auto& entry) { return std::ranges::binary_search(others, entry.id); });
    return out;
  }

  // Whether the pass over a text without memory does all of it.
  bool is_berts(const tokenizers::TokenizerRules& said, const std::vector<tokenizers::AddedText>& added) const {
    const auto plain = [](const tokenizers::AddedText& each) {
      const tokenizers::AddedToken& is = each.token;
      return !is.normalized && !is.single_word && !is.lstrip && !is.rstrip;
    };
    return said.normalizer.empty() && said.pre_tokenizer.empty() && prefix == tokenizers::Vocabulary::kPrefix &&
           said.word_limit.value_or(1) - 1 < tokenizers::kMaxWordLimit && std::ranges::all_of(added, plain);
  }

  tokenizers::Stepwise::Settings settings_of(const tokenizers::TokenizerRules& said) const {
    tokenizers::Stepwise::Settings out;
    out.prefix = prefix;
    out.word_limit = said.word_limit.value_or(options.word_limit);
    out.unknown = *special[kUnknown];
    if (out.word_limit > tokenizers::kMaxCharacters)
      base::unsupported("tokenizer/word-limit", "the longest word has " + std::to_string(out.word_limit) +
                                                    " characters, and it can have at most " +
                                                    std::to_string(tokenizers::kMaxCharacters));
    std::vector<tokenizers::RefusedSetting> refused;
    if (!said.normalizer.empty())
      out.normalizer = tokenizers::read_normalizer(said.normalizer, refused);
    else
      out.normalizer = {{.kind = tokenizers::TextStep::Kind::bert,
                         .space_chinese = options.space_chinese,
                         .lower = options.lower_case,
                         .accents = options.strip_accents}};
    if (!said.pre_tokenizer.empty())
      out.pre_tokenizer = tokenizers::read_pre_tokenizer(said.pre_tokenizer, refused);
    else
      out.pre_tokenizer = {{.kind = tokenizers::SplitStep::Kind::bert}};
    refuse(refused, options);
    return out;
  }

  std::optional<std::string_view> token(std::uint32_t id) const noexcept {
    const auto after =
        std::upper_bound(entries.begin(), entries.end(), id, [](std::uint32_t a, const auto& b) { return a < b.id; });
    if (after == entries.begin() || std::prev(after)->id != id) return std::nullopt;
    return std::prev(after)->token;
  }

  std::uint64_t around(const EncodeOptions& with) const noexcept {
    return with.special ? frame.before.size() + frame.after.size() : 0;
  }
  // The number of ids before a text. Error{misuse} if there is no room for those around it.
  std::size_t before(const EncodeOptions& with, std::size_t room) const {
    if (room < around(with))
      base::misuse("max-length", "no room for [CLS] and [SEP]: the length is at most " + std::to_string(room));
    return with.special ? frame.before.size() : 0;
  }

  // Puts the frame around the ids of a text, which are in their place.
  Encoded framed(Encoded out, std::span<std::uint32_t> ids, TokenSpan* spans, const EncodeOptions& with) const {
    if (!with.special) return out;
    const std::size_t end = frame.before.size() + base::to_size(out.count);
    std::ranges::copy(frame.before, ids.begin());
    std::ranges::copy(frame.after, ids.begin() + static_cast<std::ptrdiff_t>(end));
    if (spans != nullptr) {
      std::fill_n(spans, frame.before.size(), TokenSpan{});
      std::fill_n(spans + end, frame.after.size(), TokenSpan{});
    }
    out.count += around(with);
    return out;
  }

  // The tokens that the steps found, as far as there is room, and the frame.
  Encoded place(const tokenizers::Stepwise::Tokens& all, std::span<std::uint32_t> ids, TokenSpan* spans,
                const EncodeOptions& with) const {
    const std::size_t first = before(with, ids.size());
    const std::size_t count = std::min(all.ids.size(), ids.size() - base::to_size(around(with)));
    std::copy_n(all.ids.begin(), count, ids.begin() + static_cast<std::ptrdiff_t>(first));
    if (spans != nullptr) std::copy_n(all.spans.begin(), count, spans + first);
    return framed({count, all.replaced, count < all.ids.size()}, ids, spans, with);
  }

  const WordPieceOptions options;
  const Texts texts;
  const std::vector<tokenizers::Vocabulary::Entry> entries;  // sorted by id; views into texts
  const std::vector<std::optional<std::uint32_t>> special;   // one per entry of kRoles
  const std::string prefix;                                  // of a token that continues a word
  tokenizers::TextFrame frame;
  std::optional<tokenizers::Rules> rules{};  // one of the two
  std::optional<tokenizers::Stepwise> steps{};
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
  const std::string text = io::text_of(vocab_txt);
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
  ids = ids.first(room);
  TokenSpan* const places = spans.empty() ? nullptr : spans.data();
  if (rep_->steps) return rep_->place(rep_->steps->run(text), ids, places, options);
  const std::size_t before = rep_->before(options, room);
  const auto within = ids.subspan(before, room - base::to_size(rep_->around(options)));
  const Encoded out = tokenizers::tokenize(*rep_->rules, text, within, places == nullptr ? nullptr : places + before);
  return rep_->framed(out, ids, places, options);
}

std::uint64_t WordPiece::max_ids(std::uint64_t text_bytes) const noexcept {
  const std::uint64_t around = rep_->frame.before.size() + rep_->frame.after.size();
  if (rep_->rules) return text_bytes + around;
  // A token is of a character of the text as the steps make it, or an added one, which is of a byte of the text.
  constexpr std::uint64_t kIdsPerByte = tokenizers::kMaxGrowth + 1, kMore = tokenizers::kMaxMore;
  return text_bytes > (UINT64_MAX - around - kMore) / kIdsPerByte ? UINT64_MAX
                                                                  : text_bytes * kIdsPerByte + kMore + around;
}

Encoded WordPiece::encode_all(std::string_view text, std::vector<std::uint32_t>& ids, const EncodeOptions& options,
                              std::vector<TokenSpan>* spans) const {
  if (rep_->rules) {
    std::uint64_t room = rep_->around(options) + std::max<std::uint64_t>(text.size(), 1);
    if (options.max_length != 0) room = std::min(room, options.max_length);
    ids.resize(base::to_size(room));
    if (spans != nullptr) spans->resize(ids.size());
    const Encoded out = encode(text, ids, options, spans == nullptr ? std::span<TokenSpan>{} : std::span(*spans));
    ids.resize(base::to_size(out.count));
    if (spans != nullptr) spans->resize(ids.size());
    return out;
  }
  tokenizers::Stepwise::Tokens all = rep_->steps->run(text);
  std::uint64_t room = rep_->around(options) + all.ids.size();
  if (options.max_length != 0) room = std::min(room, options.max_length);
  ids.resize(base::to_size(room));
  if (spans != nullptr) spans->assign(ids.size(), TokenSpan{});
  return rep_->place(all, ids, spans == nullptr ? nullptr : spans->data(), options);
}

std::vector<std::uint32_t> WordPiece::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<std::uint32_t> ids;
  encode_all(text, ids, options);
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

std::string WordPiece::decode(std::span<const std::uint32_t> ids) const {
  const auto is_in = [](std::uint32_t id, const std::vector<std::uint32_t>& all) {
    return std::ranges::count(all, id) > 0;
  };
  std::string out;
  bool first = true;
  for (const std::uint32_t id : ids) {
    if (id == rep_->special[kPad] || is_in(id, rep_->frame.before) || is_in(id, rep_->frame.after)) continue;
    std::optional<std::string_view> token = rep_->token(id);
    if (!token) base::misuse("token", "no token has the id " + std::to_string(id));
    const auto begins = [&](std::string_view with) { return token->starts_with(with); };
    if (!std::exchange(first, false)) {
      if (begins(rep_->prefix))
        token->remove_prefix(rep_->prefix.size());
      else if (std::none_of(std::begin(kClose), std::end(kClose), begins))
        out += ' ';
    }
    out += *token;
  }
  return out;
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

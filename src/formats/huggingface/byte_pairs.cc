// SPDX-License-Identifier: Apache-2.0
// Reads the tokens and merges of tokenizer.json.
#include "formats/huggingface/byte_pairs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/order.h"
#include "base/utf8.h"
#include "core/model/byte_spelling.h"
#include "core/model/words.h"
#include "formats/huggingface/format.h"
#include "formats/huggingface/pipeline.h"
#include "formats/huggingface/vocabulary.h"

namespace weighbridge::huggingface {
namespace {

using core::excerpt, core::quoted;
using wire::JsonKind, wire::JsonReader, wire::JsonString;
using Merge = Tokenizer::Merge;

constexpr std::size_t kMaxBeyond = 8,
                      kLongestFound = 256;  // differences that are listed; bytes of a token that texts are searched for
constexpr std::uint32_t kFirstByte = 3;     // reading M14

struct Token {
  std::uint32_t id = 0;
  bool own = false, added = false;                           // in the model's vocabulary, in the list of added tokens
  bool special = false, strict = false, normalized = false;  // of an added token, as VocabularyEntry
  std::string text;                                          // as tokenizer.json spells it
  std::string bytes;                                         // the text that it represents
};

// The byte of "<0x41>".
std::optional<char> byte_token(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'A' || c > 'F')) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'A' + 10);
  }
  return static_cast<char>(static_cast<unsigned char>(value));
}

std::string with_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at).starts_with(kMetaspace);
    out += space ? ' ' : text[at];
    at += space ? kMetaspace.size() : 1;
  }
  return out;
}

bool is_one_character(std::string_view text) noexcept {
  return !text.empty() && base::decode_utf8(text, 0).valid && base::decode_utf8(text, 0).length == text.size();
}

class Maker {
 public:
  Maker(Reading& reading, const JsonObject& file, const JsonObject& model, const std::optional<JsonObject>& config,
        const Declared& declared)
      : reading_(reading), file_(file), model_(model), config_(config), declared_(declared) {}

  std::optional<BytePairs> run() {
    pipeline_ = read_pipeline(reading_, file_);
    if (!read_tokens() || !read_merges()) return std::nullopt;
    spell();
    add_special();
    add_rules();
    check_model();
    check_added();
    check_bytes();
    check_prefix();
    return finish();
  }

 private:
  using Spelling = Pipeline::Spelling;

  std::uint64_t offset(std::string_view raw) const noexcept {
    return static_cast<std::uint64_t>(raw.data() - file_.file.text->data());
  }
  bool fail(const Rule& rule, std::uint64_t at, const core::Said& expected = {}, const core::Said& found = {}) {
    reading_.in(file_.file).report(rule, {.offset = at}, expected, found);
    return false;
  }
  void beyond(std::string what) { pipeline_.beyond.push_back(std::move(what)); }

  // Sorts the tokens by id. An added token may also be in the model's vocabulary.
  bool read_tokens() {
    const Member* const vocabulary = model_.find("vocab");
    std::vector<VocabularyEntry> entries;
    if (vocabulary == nullptr || !read_entries(reading_, file_.file, vocabulary->raw, entries))
      return fail(rules::kVocabValue, vocabulary != nullptr ? file_.offset(*vocabulary) : 0);
    const std::size_t own = entries.size();
    add_added(reading_, file_, entries);
    for (const std::uint32_t i : base::order_by(entries.size(), [&](std::uint32_t at) { return entries[at].id; })) {
      std::string scratch;
      const std::string_view text = wire::json_text(entries[i].text, scratch);
      if (!tokens_.empty() && tokens_.back().id == entries[i].id) {
        if (tokens_.back().text != text) return fail(rules::kTokenId, offset(entries[i].text.raw), {}, entries[i].id);
        add_flags(tokens_.back(), entries[i], i >= own);
        continue;
      }
      if (entries[i].id >= declared_.vocab_size.value_or(UINT32_MAX)) {
        beyond("it has tokens that config.json has no rows for");
        break;  // the ids after it are larger still
      }
      tokens_.push_back({.id = static_cast<std::uint32_t>(entries[i].id), .text = std::string(text), .bytes = {}});
      add_flags(tokens_.back(), entries[i], i >= own);
    }
    by_text_ =
        base::order_by(tokens_.size(), [&](std::uint32_t i) { return std::tie(tokens_[i].text, tokens_[i].id); });
    return true;
  }

  static void add_flags(Token& token, const VocabularyEntry& entry, bool added) {
    (added ? token.added : token.own) = true;
    token.special |= entry.special;
    token.strict |= entry.strict;
    token.normalized |= entry.normalized;
  }

  bool by_bytes() const { return pipeline_.spelling == Spelling::bytes; }

  const Token* find(std::string_view text) const {
    const auto spelled = [&](std::uint32_t i) -> std::string_view { return tokens_[i].text; };
    const auto at = std::ranges::lower_bound(by_text_, text, {}, spelled);
    return at != by_text_.end() && tokens_[*at].text == text ? &tokens_[*at] : nullptr;
  }

  // A merge is "left right" or ["left", "right"]. Its index in the list is its rank.
  bool read_merges() {
    const Member* const list = model_.find("merges");
    JsonReader in(list != nullptr ? list->raw : std::string_view{}, reading_.limits.depth);
    if (list == nullptr || !in.enter_array()) return fail(rules::kMerges, list != nullptr ? file_.offset(*list) : 0);
    std::string first, second;
    for (std::uint32_t rank = 0; in.next_element(); ++rank) {
      const std::uint64_t at = file_.offset(*list) + in.offset();
      if (!read_pair(in, first, second)) return fail(rules::kMerges, at);
      const Token* const left = find(first);
      const Token* const right = find(second);
      const Token* const sum = find(first + second);
      if (left == nullptr || right == nullptr || sum == nullptr) {
        if (continues_) continue;  // merges cannot express such a model at all
        return fail(rules::kMerges, at, "three tokens of the vocabulary",
                    {core::in_quotes(first), " and ", core::in_quotes(second)});
      }
      if (pipeline_.split && right->text.starts_with(kMetaspace)) continue;  // cannot follow another token
      merges_.push_back({left->id, right->id, sum->id, rank});
      if (over_memory(reading_, merges_.size(), file_.file)) return false;
    }
    drop_repeated();
    return true;
  }

  static bool read_pair(JsonReader& in, std::string& first, std::string& second) {
    JsonString text;
    std::string scratch;
    if (in.read_string(text)) {
      const std::string_view both = wire::json_text(text, scratch);
      const std::size_t space = both.find(' ');
      if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) return false;
      first = both.substr(0, space);
      second = both.substr(space + 1);
      return true;
    }
    if (!in.enter_array() || !in.next_element() || !in.read_string(text)) return false;
    first = wire::json_text(text, scratch);
    if (!in.next_element() || !in.read_string(text)) return false;
    second = wire::json_text(text, scratch);
    return !in.next_element() && in.ok();
  }

  // If a pair occurs several times, the last one counts in tokenizer.json, but the first one in our tokenizers.
  void drop_repeated() {
    std::ranges::sort(merges_, [](const Merge& a, const Merge& b) {
      return std::tie(a.left, a.right, b.rank) < std::tie(b.left, b.right, a.rank);
    });
    const auto rest = std::unique(merges_.begin(), merges_.end(), [](const Merge& a, const Merge& b) {
      return a.left == b.left && a.right == b.right;
    });
    merges_.erase(rest, merges_.end());
    std::ranges::sort(merges_, {}, &Merge::rank);
  }

  void spell() {
    for (Token& token : tokens_) {
      token.bytes = token.text;
      if (token.added) {
        if (by_bytes() && token.own && core::spelled_bytes(token.text) != token.text) spelled_twice_ = true;
        continue;
      }
      if (const auto byte = falls_back() ? byte_token(token.text) : std::nullopt) {
        token.bytes.assign(1, *byte);
      } else if (pipeline_.spelling == Spelling::spaces) {
        if (token.text.find(' ') != std::string::npos) holds_space_ = true;
        token.bytes = with_spaces(token.text);
      } else if (by_bytes()) {
        token.bytes = core::spelled_bytes(token.text).value_or(token.text);
      }
    }
  }

  bool falls_back() const { return model_.boolean("byte_fallback").value_or(false); }

  // Takes special tokens from tokenizer_config.json, else config.json, else by their usual texts. A missing one becomes
  // EOS, as in vocabularies with a single special token.
  void add_special() {
    struct Role {
      const char *name, *key, *usual;
      std::optional<std::uint64_t> id;
    };
    const Role roles[] = {{"unk", "unk_token", "<unk>", std::nullopt},
                          {"bos", "bos_token", "<s>", declared_.bos},
                          {"eos", "eos_token", "</s>", declared_.eos},
                          {"pad", "pad_token", "<pad>", declared_.pad}};
    for (const Role& role : roles) {
      const Token* token = find(special_text(role.key).value_or(""));
      if (token == nullptr && role.name == std::string_view("unk")) token = find(model_.text("unk_token").value_or(""));
      if (token == nullptr && role.id) token = with_id(*role.id);
      if (token == nullptr) token = find(role.usual);
      if (token != nullptr) special_.emplace_back(role.name, token->id);
    }
    const auto named = [&](std::string_view name) {
      return std::ranges::find(special_, name, &std::pair<std::string, std::uint32_t>::first);
    };
    for (const char* name : {"bos", "unk"})
      if (named(name) == special_.end() && named("eos") != special_.end())
        special_.emplace_back(name, std::uint32_t{named("eos")->second});
  }

  std::optional<std::string> special_text(std::string_view key) {
    const Member* const member = config_ ? config_->find(key) : nullptr;
    if (member == nullptr) return std::nullopt;
    if (member->kind == JsonKind::string) return unquote(member->raw);
    const auto inner =
        member->kind == JsonKind::object ? object_in(reading_, config_->file, member->raw) : std::nullopt;
    return inner ? inner->text("content") : std::nullopt;
  }

  const Token* with_id(std::uint64_t id) const {
    const auto at = std::ranges::lower_bound(tokens_, id, {}, &Token::id);
    return at != tokens_.end() && at->id == id ? &*at : nullptr;
  }

  // Settles the rules other than merges, which our tokenizers apply too.
  void add_rules() {
    rules_.byte_level = by_bytes();
    rules_.words = pipeline_.words;
    const std::optional<std::uint32_t> eos = special("eos");
    std::set<std::uint64_t> seen;
    for (const std::uint64_t end : declared_.ends)
      if (end != eos && with_id(end) != nullptr && seen.insert(end).second)
        rules_.ends.push_back(static_cast<std::uint32_t>(end));
    if (by_bytes()) return add_frame();
    if (config_ && config_->boolean("add_bos_token") == false) rules_.bos = false;
    if (config_ && config_->boolean("add_eos_token") == true) rules_.eos = true;
  }

  // The tokens that the post-processor puts around a text.
  void add_frame() {
    rules_.bos = rules_.eos = false;
    const Member* const member = file_.find("post_processor");
    if (member != nullptr && member->kind == JsonKind::object) add_frame(member->raw, 0);
  }
  void add_frame(std::string_view raw, unsigned depth) {
    constexpr unsigned kMaxNested = 4;  // read by recursion; far deeper than real ones
    const auto step = object_in(reading_, file_.file, raw);
    const std::string type = step ? step->text("type").value_or("") : "";
    const Member* const list = step ? step->find(type == "Sequence" ? "processors" : "single") : nullptr;
    if (type == "ByteLevel") return;  // it changes offsets only
    if (type == "RobertaProcessing") return void(rules_.bos = rules_.eos = true);
    if (list == nullptr || depth == kMaxNested || (type != "Sequence" && type != "TemplateProcessing"))
      return beyond("it puts tokens around a text in a way that is not known");
    JsonReader in(list->raw, reading_.limits.depth);
    if (!in.enter_array()) return beyond("it puts tokens around a text in a way that is not known");
    std::vector<std::string> around[2];  // before the text, and after it
    bool behind = false;
    for (std::string_view each; in.next_element() && in.skip_value(each);) {
      if (type == "Sequence") {
        add_frame(each, depth + 1);
        continue;
      }
      const auto piece = object_in(reading_, file_.file, each);
      const Member* const token = piece ? piece->find("SpecialToken") : nullptr;
      const auto inner = token != nullptr ? object_in(reading_, file_.file, token->raw) : std::nullopt;
      if (inner)
        around[behind ? 1 : 0].push_back(inner->text("id").value_or(""));
      else
        behind = true;
    }
    if (type == "TemplateProcessing") frame(around[0], around[1]);
  }
  void frame(const std::vector<std::string>& before, const std::vector<std::string>& behind) {
    const auto is = [&](const std::vector<std::string>& all, std::string_view role) {
      const Token* const token = all.size() == 1 ? find(all[0]) : nullptr;
      return token != nullptr && token->id == special(role);
    };
    rules_.bos = is(before, "bos");
    rules_.eos = is(behind, "eos");
    if (rules_.bos == before.empty() || rules_.eos == behind.empty())
      beyond("it puts other tokens than BOS and EOS around a text");
  }

  std::optional<std::uint32_t> special(std::string_view role) const {
    const auto at = std::ranges::find(special_, role, &std::pair<std::string, std::uint32_t>::first);
    return at == special_.end() ? std::nullopt : std::optional(std::uint32_t{at->second});
  }

  void check_model() {
    rules_.whole_words = model_.boolean("ignore_merges").value_or(false);
    if (rules_.whole_words && rules_.words.empty()) {
      rules_.whole_words = false;
      beyond("it takes whole words without their merges");
    }
    const Member* const dropout = model_.find("dropout");
    if (dropout != nullptr && dropout->kind == JsonKind::number && wire::as_double(dropout->raw).value_or(1) > 0)
      beyond("it drops merges at random");
    if (continues_) beyond("it marks the parts of words");
  }

  // Hugging Face finds added tokens in texts. Ours does not encode a text to a special token, on purpose. Other added
  // tokens are found by byte-level tokenizers, and count as a difference for the rest.
  void check_added() {
    if (by_bytes()) return add_found();
    std::size_t others = 0;
    const Token* first = nullptr;
    for (const Token& token : tokens_) {
      const auto is = [&](const auto& each) { return each.second == token.id; };
      if (!token.added || std::ranges::any_of(special_, is)) continue;
      if (others++ == 0) first = &token;
    }
    if (others > 0)
      beyond("it finds " + std::to_string(others) + " added tokens in texts, the first is " +
             quoted(excerpt(first->text)));
  }

  void add_found() {
    bool strict = false, of_normalized = false, of_others = false;
    for (const Token& token : tokens_) {
      if (!token.added || token.text.empty()) continue;
      (token.special ? rules_.control : rules_.found).push_back(token.id);
      (token.normalized ? of_normalized : of_others) |= !token.special;
      strict |= !token.special && token.strict;
      if (!token.special && token.text.size() > kLongestFound)
        beyond("it finds an added token of " + std::to_string(token.text.size()) + " bytes in texts");
    }
    if (strict) beyond("it finds added tokens only as words of their own, or with the spaces around them");
    if (of_normalized && of_others) beyond("it finds some added tokens before it looks for others");
    if (spelled_twice_) beyond("it tells tokens apart that stand for the same text");
  }

  // Each byte needs a token, and no other token may hide it.
  void check_bytes() {
    std::array<bool, 256> there{};
    std::array<std::uint32_t, 256> byte_id{};
    for (const Token& token : tokens_) {
      const bool fallback = falls_back() && byte_token(token.text);
      if (token.added || token.bytes.size() != 1 || !(by_bytes() || fallback)) continue;
      const auto byte = static_cast<unsigned char>(token.bytes[0]);
      there[byte] = true;
      byte_id[byte] = token.id;
    }
    if (std::ranges::find(there, false) != there.end())
      beyond("characters that its vocabulary lacks are no bytes to it");
    std::vector<std::uint32_t> made;
    for (const Merge& merge : merges_) made.push_back(merge.output);
    std::ranges::sort(made);
    bool hidden = holds_space_;
    for (const Token& token : tokens_) {
      if (token.added) continue;
      const bool fallback = falls_back() && byte_token(token.text);
      if (!by_bytes() && token.bytes.size() == 1 && !fallback)
        hidden |= byte_id[static_cast<unsigned char>(token.bytes[0])] > token.id;
      if (by_bytes() && token.bytes.size() > 1 && is_one_character(token.bytes))
        rules_.apart |= !std::ranges::binary_search(made, token.id);
    }
    if (hidden) beyond("it tells tokens apart that stand for the same text");
  }

  // By reading M14, the vocabulary alone decides whether a space goes before a text.
  void check_prefix() {
    bool sentencepiece = special("bos") == 1U && special("eos") == 2U;
    for (std::uint32_t b = 0; b < 256 && sentencepiece; ++b) {
      const Token* const token = with_id(kFirstByte + b);
      sentencepiece = token != nullptr && token->bytes.size() == 1 && static_cast<unsigned char>(token->bytes[0]) == b;
    }
    if (pipeline_.prefix && !sentencepiece) beyond("it puts a space before a text");
    if (!pipeline_.prefix && sentencepiece) beyond("it puts no space before a text");
    if (pipeline_.prefix && sentencepiece && pipeline_.spares_first)
      reading_.in(file_.file).report(rules::kLeadingSpace, {});
  }

  BytePairs finish() {
    BytePairs out;
    Tokenizer& t = out.tokenizer;
    t.kind = Tokenizer::Kind::bpe;
    const std::uint64_t ids = tokens_.empty() ? 0 : tokens_.back().id + std::uint64_t{1};
    t.vocab_size = static_cast<std::uint32_t>(declared_.vocab_size.value_or(ids));
    bool in_order = true;
    for (const Token& token : tokens_) {
      if (token.bytes.empty()) continue;  // encoding never produces it
      in_order = in_order && token.id == t.tokens.size();
      t.tokens.push_back(token.bytes);
      t.ids.push_back(token.id);
    }
    if (in_order) t.ids.clear();
    t.merges = std::move(merges_);
    t.special = std::move(special_);
    out.rules = std::move(rules_);
    for (std::size_t i = 0; i < std::min(pipeline_.beyond.size(), kMaxBeyond); ++i)
      out.unheld += (i == 0 ? "" : "; ") + pipeline_.beyond[i];
    return out;
  }

  // Whether the model marks parts of words, which merges cannot express.
  bool marks_words() const {
    return !model_.text("continuing_subword_prefix").value_or("").empty() ||
           !model_.text("end_of_word_suffix").value_or("").empty();
  }

  Reading& reading_;
  const JsonObject &file_, &model_;
  const std::optional<JsonObject>& config_;
  const Declared& declared_;
  const bool continues_ = marks_words();
  Pipeline pipeline_;
  std::vector<Token> tokens_;  // by id
  std::vector<std::uint32_t> by_text_;
  std::vector<Merge> merges_;
  std::vector<std::pair<std::string, std::uint32_t>> special_;
  tokenizers::TokenizerRules rules_;
  bool holds_space_ = false, spelled_twice_ = false;
};

}  // namespace

std::optional<BytePairs> read_byte_pairs(Reading& reading, const JsonObject& file, const JsonObject& model,
                                         const std::optional<JsonObject>& config, const Declared& declared) {
  return Maker(reading, file, model, config, declared).run();
}

}  // namespace weighbridge::huggingface

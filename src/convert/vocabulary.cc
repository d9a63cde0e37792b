// SPDX-License-Identifier: Apache-2.0
// WordPiece becomes llama.cpp's "bert", byte pairs that began as sentencepiece's its "llama", those of bytes its
// "gpt2". Sources: convert_hf_to_gguf.py and src/llama-vocab.cpp of github.com/ggml-org/llama.cpp.
//
// "llama" knows no merges: it joins the two neighbors whose joined text is the token of the highest score. That gives
// the same tokens as merges in the order of their ranks if every pair of tokens that forms a token is a merge, and if
// merges to one token have ranks that follow each other.
#include "convert/naming.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/model/byte_spelling.h"
#include "core/model/words.h"
#include "tokenizers/described.h"
#include "tokenizers/splitter.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::convert {
namespace {

using tokenizers::TokenType;

constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581, which stands for a space
// Bytes of the longest token that overlap() compares; longer ones count as overlapping. The time grows with the square.
constexpr std::size_t kLongest = 256;

class Making {
 public:
  Making(const Model& model, const Tokenizer& from, std::uint64_t rows, std::string_view rules, std::string_view unheld)
      : model_(model), from_(from), size_(rows), rules_text_(rules), unheld_(unheld) {
    const auto said = [&](std::string_view key) {
      const Value* const value = model.attribute(key);
      return value == nullptr ? std::string() : value->to_text();
    };
    if (rules_text_.empty()) rules_text_ = said(tokenizers::kTokenizerRules);
    if (unheld_.empty()) unheld_ = said(tokenizers::kTokenizerUnheld);
    bytes_.resize(static_cast<std::size_t>(size_));
    for (std::size_t i = 0; i < from.tokens.size(); ++i) {
      const std::uint64_t id = from.ids.empty() ? i : from.ids[i];
      if (id < size_) bytes_[static_cast<std::size_t>(id)] = from.tokens[i];
    }
    for (const auto& [role, id] : from.special)
      if (id < size_) special_.insert(id);
  }

  Vocabulary run() {
    if (!unheld_.empty()) differ("left out: " + unheld_);
    if (!rules_text_.empty()) {
      if (auto parsed = tokenizers::parse_tokenizer_rules(rules_text_))
        rules_ = *std::move(parsed);
      else
        differ("left out: " + core::excerpt(rules_text_));
    }
    if (from_.kind == Tokenizer::Kind::wordpiece)
      word_pieces();
    else if (rules_.byte_level)
      byte_level();
    else if (const auto first = first_byte(); first && (from_.merges.empty() || spells_twice(*first)))
      sentence_pieces(*first);
    else
      nothing();
    return std::move(out_);
  }

 private:
  void add(std::string key, Value value) {
    out_.attributes.emplace_back(std::string(tokenizers::kLlamaCppKeys) + key, std::move(value));
  }
  void add(std::string key, std::string_view text) { add(std::move(key), Value::text(std::string(text))); }
  void differ(std::string sentence) { out_.differences.push_back(std::move(sentence)); }

  void nothing() {
    add("model", "none");
    differ("dropped: its tokens are sequences of bytes, and nothing says how it divides texts into words");
  }

  std::optional<std::uint32_t> special(std::string_view role) const {
    const auto at = std::ranges::find(from_.special, role, &std::pair<std::string, std::uint32_t>::first);
    return at == from_.special.end() ? std::nullopt : std::optional(std::uint32_t{at->second});
  }
  void add_id(std::string key, std::string_view role) {
    if (const auto id = special(role)) add(std::move(key), Value::integer(std::uint64_t{*id}, DType::u32));
  }

  // One token per id; `spell` gives its text and type.
  template <class Spell> void add_tokens(Spell spell) {
    Texts texts;
    std::vector<std::byte> types(bytes_.size() * 4);
    std::size_t not_text = 0;
    for (std::uint32_t id = 0; id < bytes_.size(); ++id) {
      TokenType type = special_.contains(id) ? TokenType::control : TokenType::normal;
      std::string text = spell(id, type);
      if (text.empty() || !base::is_utf8(text)) {
        if (!text.empty()) ++not_text;
        text = fmt::format("[PAD{}]", id);
        type = TokenType::unused;
      }
      texts.push_back(text);
      base::store_le<std::uint32_t>(types.data() + std::size_t{id} * 4, static_cast<std::uint32_t>(type));
    }
    if (not_text > 0) differ(fmt::format("without {} tokens that are no text", not_text));
    add("tokens", Value::texts(std::move(texts)));
    add("token_type", Value::numbers(DType::i32, std::move(types)));
  }

  // ---- WordPiece ----

  // A word of llama.cpp begins with U+2581, and its continuation does not begin with ##.
  void word_pieces() {
    constexpr std::string_view kContinued = "##";
    add("model", "bert");
    add("pre", "default");
    add_tokens([&](std::uint32_t id, TokenType&) {
      const std::string_view token = bytes_[id];
      if (special_.contains(id) || token.empty()) return std::string(token);
      return token.starts_with(kContinued) && token != kContinued ? std::string(token.substr(kContinued.size()))
                                                                  : std::string(kMetaspace) + std::string(token);
    });
    for (const auto& [key, role] : {std::pair("bos", "cls"), std::pair("eos", "sep"), std::pair("unknown", "unk"),
                                    std::pair("seperator", "sep"),  // spelled so
                                    std::pair("padding", "pad"), std::pair("mask", "mask")})
      add_id(std::string(key) + "_token_id", role);
    for (const auto& [key, adds] : {std::pair("bos", true), std::pair("eos", true), std::pair("sep", false)})
      add("add_" + std::string(key) + "_token", Value::boolean(adds));
    const auto flag = [&](std::string_view key) {
      const Value* const value = model_.attribute(key);
      return value == nullptr ? std::nullopt : value->as_bool();
    };
    add("normalizer.lowercase", Value::boolean(flag(tokenizers::kLowerCase).value_or(true)));
    if (const auto strips = flag(tokenizers::kStripAccents)) add("normalizer.strip_accents", Value::boolean(*strips));
    if (flag(tokenizers::kSpaceChinese) == false)
      differ("with each Chinese character a word: llama.cpp does not follow tokenize_chinese_chars");
    if (const std::string beyond = tokenizers::beyond_wordpieces(rules_); !beyond.empty())
      differ("with a BERT's rules in llama.cpp, where this tokenizer has its own: " + beyond);
  }

  // ---- GPT-2 ----

  void byte_level() {
    const auto* const words = tokenizers::Splitter::find(rules_.words);
    const std::string_view pre = words == nullptr ? "" : rules_.whole_words ? words->pre_whole : words->pre;
    if (pre.empty()) {
      add("model", "none");
      return differ(
          "dropped: llama.cpp has no name for how it divides texts into words, " +
          (rules_.words.empty() ? "which it does not" : "by " + core::quoted(core::excerpt(rules_.words[0]))));
    }
    if (!words->in_llama_cpp.empty()) differ(std::string(words->in_llama_cpp));
    const std::set<std::uint32_t> control(rules_.control.begin(), rules_.control.end()),
        found(rules_.found.begin(), rules_.found.end());
    const auto is_text = [&](std::uint32_t id) { return !control.contains(id) && !special_.contains(id); };
    add("model", "gpt2");
    std::vector<Value::Entry> special;
    if (model_.format() == "hf") special = special_tokens(model_, size_);
    const bool pairs = std::ranges::any_of(special, [](const Value::Entry& each) {
      return each.first == "tokenizer.ggml.add_sep_token" && each.second.as_bool() == true;
    });
    add("pre", pairs && pre == "gpt-2" ? std::string_view("roberta-bpe") : pre);
    add_tokens([&](std::uint32_t id, TokenType& type) {
      if (found.contains(id) || control.contains(id)) {
        type = found.contains(id) ? TokenType::user_defined : TokenType::control;
        return std::string(bytes_[id]);
      }
      return is_text(id) ? core::spelling_of(bytes_[id]) : special_text(id);
    });
    std::vector<Tokenizer::Merge> merges = from_.merges;
    std::ranges::stable_sort(merges, {}, &Tokenizer::Merge::rank);
    Texts merges_text;
    std::size_t others = 0;
    for (const Tokenizer::Merge& merge : merges) {
      const std::string_view left = spelled(merge.left), right = spelled(merge.right);
      if (left.empty() || right.empty() || std::string(left).append(right) != spelled(merge.output)) {
        ++others;
        continue;
      }
      merges_text.push_back(core::spelling_of(left) + " " + core::spelling_of(right));
    }
    if (overlap(rules_.found, rules_.found, false) || overlap(rules_.found, rules_.control, true))
      differ("with the longest of the added tokens that overlap in a text, where the model takes the first");
    if (others > 0) differ(fmt::format("without {} merges to another text than that of their tokens", others));
    add("merges", Value::texts(std::move(merges_text)));
    if (special.empty()) {
      add_specials();
    } else {
      for (Value::Entry& each : special) out_.attributes.push_back(std::move(each));
      add_ends();
    }
    add("add_space_prefix", Value::boolean(false));
  }

  // Whether a text can contain a token of one kind and a token of the other that overlap, so that it matters which is
  // matched first: the later one is longer or, with `within`, lies inside the first one.
  bool overlap(const std::vector<std::uint32_t>& found, const std::vector<std::uint32_t>& others, bool within) const {
    // With more pairs, assume that some overlap: comparing them all would take too long.
    constexpr std::size_t kMaxPairs = std::size_t{1} << 20;
    if (!found.empty() && others.size() > kMaxPairs / found.size()) return true;
    const auto meet = [](std::string_view first, std::string_view second) {
      for (std::size_t n = 1; n < std::min(first.size(), second.size()); ++n)
        if (first.ends_with(second.substr(0, n))) return true;
      return false;
    };
    return std::ranges::any_of(found, [&](std::uint32_t a) {
      return std::ranges::any_of(others, [&](std::uint32_t b) {
        const std::string_view one = spelled(a), other = spelled(b);
        if (one.size() > kLongest || other.size() > kLongest) return true;
        if (within) return other.find(one) != other.npos || meet(other, one) || meet(one, other);
        return one.size() < other.size() && meet(one, other);
      });
    });
  }

  void add_specials() {
    add_id("bos_token_id", "bos");
    add_id("eos_token_id", "eos");
    if (!rules_.byte_level || special("unk") != special("eos")) add_id("unknown_token_id", "unk");
    add_id("padding_token_id", "pad");
    add("add_bos_token", Value::boolean(rules_.bos.value_or(true)));
    add("add_eos_token", Value::boolean(rules_.eos.value_or(false)));
    add_ends();
  }

  // llama.cpp has a place for the end of a turn and one for that of a message.
  void add_ends() {
    constexpr std::string_view kKeys[] = {"eot_token_id", "eom_token_id"};
    std::vector<std::uint32_t> ends;
    std::ranges::copy_if(rules_.ends, std::back_inserter(ends), [&](std::uint32_t id) { return id < size_; });
    std::stable_partition(ends.begin(), ends.end(), [&](std::uint32_t id) { return spelled(id) != "<|eom_id|>"; });
    if (ends.size() == 1 && spelled(ends[0]) == "<|eom_id|>") return add_end(kKeys[1], ends[0]);
    for (std::size_t i = 0; i < std::min(ends.size(), std::size(kKeys)); ++i) add_end(kKeys[i], ends[i]);
    if (ends.size() > std::size(kKeys))
      differ(fmt::format("without {} more tokens that end a generated text", ends.size() - std::size(kKeys)));
  }
  void add_end(std::string_view key, std::uint32_t id) {
    add(std::string(key), Value::integer(std::uint64_t{id}, DType::u32));
  }

  // ---- sentencepiece ----

  std::string_view spelled(std::uint64_t id) const {
    return id < bytes_.size() ? bytes_[static_cast<std::size_t>(id)] : std::string_view{};
  }
  // The first of 256 consecutive ids that spell the bytes 0 to 255.
  std::optional<std::uint64_t> first_byte() const {
    if (from_.kind == Tokenizer::Kind::byte) return 0;
    for (std::uint64_t first = 0; first + 256 <= size_ && first < 256; ++first) {
      bool all = true;
      for (std::uint64_t b = 0; b < 256 && all; ++b)
        all = spelled(first + b).size() == 1 && static_cast<unsigned char>(spelled(first + b)[0]) == b;
      if (all) return first;
    }
    return std::nullopt;
  }
  // Whether characters have tokens of their own besides the tokens of their bytes, as in sentencepiece vocabularies.
  bool spells_twice(std::uint64_t first) const {
    for (std::uint64_t id = first + 256; id < size_; ++id)
      if (spelled(id).size() == 1) return true;
    return false;
  }

  void sentence_pieces(std::uint64_t first) {
    const std::vector<float> scores = check_merges(first);
    add("model", "llama");
    add("pre", "default");
    std::size_t holding = 0;
    const auto unknown = special("unk");
    add_tokens([&](std::uint32_t id, TokenType& type) -> std::string {
      if (id >= first && id < first + 256) {
        type = TokenType::byte;
        return fmt::format("<0x{:02X}>", id - first);
      }
      if (special_.contains(id)) {
        if (unknown == id && special("eos") != id) type = TokenType::unknown;
        return special_text(id);
      }
      std::string text;
      if (bytes_[id].find(kMetaspace) != std::string_view::npos) ++holding;
      for (const char c : bytes_[id]) c == ' ' ? text += kMetaspace : text += c;
      return text;
    });
    if (holding > 0) differ(fmt::format("with {} tokens that hold a U+2581, which is a space there", holding));
    std::vector<std::byte> bytes(scores.size() * 4);
    for (std::size_t i = 0; i < scores.size(); ++i)
      base::store_le<std::uint32_t>(bytes.data() + i * 4, std::bit_cast<std::uint32_t>(scores[i]));
    add("scores", Value::numbers(DType::f32, std::move(bytes)));
    add_specials();
    add("add_space_prefix", Value::boolean(first == 3 && special("bos") == 1U && special("eos") == 2U));  // reading M14
  }

  std::string special_text(std::uint32_t id) const {
    if (!bytes_[id].empty()) return std::string(bytes_[id]);
    for (const auto& [role, own] : from_.special)
      if (own == id) return role == "eos" ? "</s>" : role == "bos" ? "<s>" : "<" + role + ">";
    return {};
  }

  // The score of each token, from the ranks of its merges. Records where scores give other tokens than merges.
  std::vector<float> check_merges(std::uint64_t first) {
    struct Ranks {
      std::uint32_t minimum = UINT32_MAX, maximum = 0;
    };
    std::vector<Ranks> ranks(bytes_.size());
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (const Tokenizer::Merge& merge : from_.merges) {
      if (merge.output >= ranks.size()) continue;
      Ranks& of = ranks[merge.output];
      of.minimum = std::min(of.minimum, merge.rank);
      of.maximum = std::max(of.maximum, merge.rank);
      pairs.emplace(merge.left, merge.right);
    }
    std::vector<float> scores(bytes_.size());
    std::vector<std::pair<Ranks, std::uint32_t>> in_order;
    for (std::uint32_t id = 0; id < ranks.size(); ++id)
      if (ranks[id].minimum != UINT32_MAX) in_order.emplace_back(ranks[id], id);
    std::ranges::sort(in_order, {}, [](const auto& each) { return each.first.minimum; });
    std::size_t mixed = 0;
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      scores[in_order[i].second] = -static_cast<float>(i);
      if (i > 0 && in_order[i - 1].first.maximum > in_order[i].first.minimum) ++mixed;
    }
    if (mixed > 0) differ(fmt::format("with {} merges in another order", mixed));
    if (in_order.size() > std::size_t{1} << 24) differ("with ranks that 32-bit scores cannot tell apart");
    if (const std::size_t more = unmerged(first, pairs); more > 0)
      differ(fmt::format("llama.cpp would also merge {} pairs of tokens that the model does not merge", more));
    return scores;
  }

  // Finds pairs of tokens whose joined text is a token although no merge joins them.
  std::size_t unmerged(std::uint64_t first, const std::set<std::pair<std::uint32_t, std::uint32_t>>& pairs) const {
    std::unordered_map<std::string_view, std::uint32_t> ids;
    const auto is_text = [&](std::uint32_t id) {
      return !bytes_[id].empty() && !special_.contains(id) && (id < first || id >= first + 256);
    };
    for (std::uint32_t id = 0; id < bytes_.size(); ++id)
      if (is_text(id)) ids.insert_or_assign(bytes_[id], id);
    std::size_t out = 0;
    for (const auto& [text, id] : ids) {
      if (text.size() > kLongest) {
        ++out;
        continue;
      }
      for (std::size_t at = 1; at < text.size(); ++at) {
        const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
        if (left != ids.end() && right != ids.end() && !pairs.contains({left->second, right->second})) ++out;
      }
    }
    return out;
  }

  const Model& model_;
  const Tokenizer& from_;
  const std::uint64_t size_;
  std::string rules_text_, unheld_;
  Vocabulary out_;
  tokenizers::TokenizerRules rules_;
  std::vector<std::string_view> bytes_;  // by id
  std::set<std::uint32_t> special_;
};

}  // namespace

Vocabulary vocabulary_for_llama_cpp(const Model& model, const Tokenizer& tokenizer, std::uint64_t rows,
                                    std::string_view rules, std::string_view unheld) {
  return Making(model, tokenizer, rows, rules, unheld).run();
}

}  // namespace weighbridge::convert

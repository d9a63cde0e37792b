// SPDX-License-Identifier: Apache-2.0
// llama.cpp's tokenizers in the forms that are here. Source: src/llama-vocab.cpp of github.com/ggml-org/llama.cpp.
//
// "llama" (sentencepiece) has no merges: of all neighbors whose joined text is a token, those of the highest score are
// joined, the first ones first. So each pair of tokens that forms a token is a merge, whose rank is the place of its
// score. "gpt2" merges bytes within words, by a list of merges. "bert" is WordPiece; words begin with U+2581, and the
// parts of words with nothing.
#include "tokenizers/described.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "codecs/checksum.h"
#include "core/model/byte_spelling.h"
#include "core/model/words.h"
#include "tokenizers/splitter.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::tokenizers {
namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // U+2581
constexpr std::size_t kLongest = 256;                    // bytes of a token

// The byte of "<0x41>".
std::optional<char> byte_of(std::string_view text) noexcept {
  std::byte value{};
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>' ||
      !codecs::from_hex(text.substr(3, 2), std::span(&value, 1)))
    return std::nullopt;
  return static_cast<char>(value);
}

class Reading {
 public:
  explicit Reading(const Model& model) : model_(model) {}

  Described read(const BytePairOptions& asked) {
    const Value* const kind = said("model");
    const std::string text = kind ? kind->to_text() : std::string();
    if (text != "llama" && text != "bert" && text != "gpt2")
      base::unsupported("tokenizer/model", "the tokenizer of the model is " + core::quoted(core::excerpt(text)) +
                                               ", which weighbridge does not have");
    read_tokens();
    Described out{.options = asked};
    if (text == "bert") {
      words();
    } else if (text == "gpt2") {
      bytes(out.options);
    } else {
      pieces();
      out.options.metaspace = true;
      if (!out.options.prefix_space) out.options.prefix_space = flag("add_space_prefix").value_or(true);
    }
    if (text != "bert") find_in_texts(out.options);
    if (text != "bert") find_ends(out.options);
    out.tokenizer = std::make_shared<const Tokenizer>(std::move(out_));
    return out;
  }

 private:
  const Value* said(std::string_view key) const {
    return model_.attribute(std::string(kLlamaCppKeys) + std::string(key));
  }
  std::optional<bool> flag(std::string_view key) const {
    const Value* const value = said(key);
    return value ? value->as_bool() : std::nullopt;
  }
  [[noreturn]] static void fail(std::string_view rule, std::string sentence) {
    base::malformed("tokenizer/" + std::string(rule), std::move(sentence));
  }

  void read_tokens() {
    const Value* const tokens = said("tokens");
    texts_ = tokens ? tokens->texts() : nullptr;
    if (texts_ == nullptr || texts_->size() == 0 || texts_->size() > INT32_MAX)
      fail("tokens", "the metadata of the model have no list of tokens");
    const std::span<const std::byte> types = numbers("token_type", DType::i32);
    for (std::size_t i = 0; i < texts_->size(); ++i) {
      const auto type = types.empty() ? 1 : base::load_le<std::uint32_t>(types.data() + i * 4);
      types_.push_back(type >= 1 && type <= 6 ? static_cast<TokenType>(type) : TokenType::normal);
    }
    out_.vocab_size = static_cast<std::uint32_t>(texts_->size());
  }
  // An array with a number for each token; empty if it is not there.
  std::span<const std::byte> numbers(std::string_view key, DType dtype) const {
    const Value* const value = said(key);
    if (value == nullptr) return {};
    if (value->kind() != Value::Kind::numbers || value->type() != dtype || value->bytes().size() != texts_->size() * 4)
      fail(key == "scores" ? "scores" : "types",
           "the metadata have no number of the kind " + std::string(key) + " for each token");
    return value->bytes();
  }

  void special(std::string_view role, std::initializer_list<std::string_view> keys,
               std::optional<std::uint32_t> otherwise = {}) {
    for (const std::string_view key : keys)
      if (const Value* const value = said(key)) {
        const auto id = value->as_u64();
        if (!id || *id >= out_.vocab_size)
          fail("special", "the id of the token " + std::string(role) + " is not in the vocabulary");
        out_.special.emplace_back(std::string(role), static_cast<std::uint32_t>(*id));
        return;
      }
    if (otherwise && *otherwise < out_.vocab_size) out_.special.emplace_back(std::string(role), *otherwise);
  }

  void add(std::uint32_t id, std::string_view text) {
    if (text.empty()) return;
    out_.tokens.push_back(text);
    out_.ids.push_back(id);
  }

  // ---- WordPiece ----

  void words() {
    out_.kind = Tokenizer::Kind::wordpiece;
    std::string text;
    for (std::uint32_t id = 0; id < out_.vocab_size; ++id) {
      const std::string_view token = (*texts_)[id];
      const bool whole = types_[id] == TokenType::control || (token.starts_with('[') && token.ends_with(']'));
      if (whole)
        add(id, token);
      else if (token.starts_with(kMetaspace))
        add(id, token.substr(kMetaspace.size()));
      else if (!token.empty())
        add(id, text.assign("##").append(token));
    }
    special("pad", {"padding_token_id"}, 0);
    special("unk", {"unknown_token_id"}, 100);
    special("cls", {"cls_token_id", "bos_token_id"}, 101);
    special("sep", {"seperator_token_id", "separator_token_id", "eos_token_id"}, 102);
    special("mask", {"mask_token_id"}, 103);
  }

  // Tokens that the user of a model has defined are found in texts, and no merge makes them.
  void find_in_texts(BytePairOptions& options) {
    for (std::uint32_t id = 0; id < out_.vocab_size; ++id) {
      if (types_[id] != TokenType::user_defined || (*texts_)[id].empty()) continue;
      options.in_texts.push_back(id);
    }
    options.adds_bos = options.adds_bos && flag("add_bos_token").value_or(options.whole_words || options.words.empty());
    options.adds_eos = options.adds_eos || flag("add_eos_token").value_or(false);
  }

  // The ends of a turn, and of a message.
  void find_ends(BytePairOptions& options) {
    for (const std::string_view key : {"eot_token_id", "eom_token_id"})
      if (const Value* const value = said(key)) {
        const auto id = value->as_u64();
        if (!id || *id >= out_.vocab_size)
          fail("special", "the id of " + std::string(key) + " is not in the vocabulary");
        options.ends.push_back(static_cast<std::uint32_t>(*id));
      }
  }

  // ---- GPT-2 ----

  void bytes(BytePairOptions& options) {
    out_.kind = Tokenizer::Kind::bpe;
    const Value* const pre = said("pre");
    options.words = pre ? pre->to_text() : "default";
    const Splitter::Named* const named = Splitter::find(options.words);
    if (!named || options.words.starts_with(Splitter::kHuggingFace))
      base::unsupported("tokenizer/words", "texts are divided into words as for " +
                                               core::quoted(core::excerpt(options.words)) +
                                               ", which weighbridge does not know");
    options.byte_level = true;
    options.whole_words = named->whole_words;
    options.prefix_space = false;
    std::unordered_map<std::string_view, std::uint32_t> ids;  // of spellings
    for (std::uint32_t id = 0; id < out_.vocab_size; ++id) {
      const std::string_view token = (*texts_)[id];
      const bool plain = types_[id] == TokenType::normal || types_[id] == TokenType::unused;
      const auto spelled = plain ? core::spelled_bytes(token) : std::nullopt;
      if (plain && !spelled) continue;  // no bytes, so no text has it
      add(id, plain ? std::string_view(*spelled) : token);
      if (plain) ids.emplace(token, id);
    }
    special("eos", {"eos_token_id"}, 11);
    special("bos", {"bos_token_id", "eos_token_id"}, 11);
    special("unk", {"unknown_token_id", "eos_token_id"}, 11);
    special("pad", {"padding_token_id"});
    const Value* const merges = said("merges");
    const Texts* const list = merges ? merges->texts() : nullptr;
    if (list == nullptr) fail("merges", "the metadata of the model have no list of merges");
    std::string joined;
    for (std::size_t rank = 0; rank < list->size(); ++rank) {
      const std::string_view pair = (*list)[rank];
      const std::size_t space = pair.find(' ', 1);
      if (space == pair.npos) fail("merges", "a merge is not two tokens with a space between them");
      const auto left = ids.find(pair.substr(0, space)), right = ids.find(pair.substr(space + 1));
      joined.assign(pair.substr(0, space)).append(pair.substr(space + 1));
      const auto output = ids.find(joined);
      // A merge of what is no token cannot be reached.
      if (left != ids.end() && right != ids.end() && output != ids.end())
        out_.merges.push_back({left->second, right->second, output->second, static_cast<std::uint32_t>(rank)});
    }
  }

  // ---- sentencepiece ----

  void pieces() {
    out_.kind = Tokenizer::Kind::bpe;
    std::string text;
    for (std::uint32_t id = 0; id < out_.vocab_size; ++id) {
      const std::string_view token = (*texts_)[id];
      const auto byte = types_[id] == TokenType::byte ? byte_of(token) : std::nullopt;
      if (types_[id] == TokenType::byte && !byte) fail("tokens", "the token of a byte is not spelled as <0x00>");
      if (token.size() > kLongest && types_[id] != TokenType::control)
        fail("token", "a token has " + std::to_string(token.size()) + " bytes, and " + std::to_string(kLongest) +
                          " are the most");
      text.clear();
      if (byte) text = *byte;
      for (std::size_t at = 0; !byte && at < token.size();) {
        const bool space = token.substr(at).starts_with(kMetaspace);
        text += space ? ' ' : token[at];
        at += space ? kMetaspace.size() : 1;
      }
      add(id, text);
    }
    special("unk", {"unknown_token_id"}, 0);
    special("bos", {"bos_token_id"}, 1);
    special("eos", {"eos_token_id"}, 2);
    special("pad", {"padding_token_id"});
    merge();
  }

  void merge() {
    const std::span<const std::byte> bytes = numbers("scores", DType::f32);
    if (bytes.empty()) fail("scores", "the metadata have no scores, by which this tokenizer joins tokens");
    std::vector<float> scores;
    for (std::size_t i = 0; i < texts_->size(); ++i)
      scores.push_back(std::bit_cast<float>(base::load_le<std::uint32_t>(bytes.data() + i * 4)));
    if (std::ranges::any_of(scores, [](float score) { return std::isnan(score); }))
      fail("scores", "a score is not a number");
    std::vector<float> order = scores;
    std::ranges::sort(order, std::greater());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    std::unordered_map<std::string_view, std::uint32_t> ids;  // of equal texts, the last
    const auto joins = [&](std::uint32_t id) {
      return types_[id] != TokenType::byte && types_[id] != TokenType::control && types_[id] != TokenType::user_defined;
    };
    for (std::size_t i = 0; i < out_.tokens.size(); ++i)
      if (joins(out_.ids[i])) ids.insert_or_assign(out_.tokens[i], out_.ids[i]);
    for (std::size_t i = 0; i < out_.tokens.size(); ++i) {
      const std::uint32_t id = out_.ids[i];
      const std::string_view text = out_.tokens[i];
      if (!joins(id) || ids.at(text) != id) continue;
      const auto rank =
          static_cast<std::uint32_t>(std::ranges::lower_bound(order, scores[id], std::greater()) - order.begin());
      for (std::size_t at = base::decode_utf8(text, 0).length; at < text.size();
           at += base::decode_utf8(text, at).length) {
        const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
        if (left != ids.end() && right != ids.end()) out_.merges.push_back({left->second, right->second, id, rank});
      }
    }
  }

  const Model& model_;
  const Texts* texts_ = nullptr;
  std::vector<TokenType> types_;
  Tokenizer out_;
};

std::string no_rules(std::string_view text) {
  return "the attribute " + core::quoted(tokenizers::kTokenizerRules) + " of the model is " +
         core::quoted(core::excerpt(text)) + ", which are no rules";
}

// The options of a model that has its own tokenizer.
BytePairOptions with_rules(const Model& model, BytePairOptions options) {
  if (const Value* const unheld = model.attribute(tokenizers::kTokenizerUnheld))
    base::unsupported("tokenizer/unheld", "the model's tokenizer does what this one does not: " + unheld->to_text());
  const Value* const text = model.attribute(tokenizers::kTokenizerRules);
  if (text == nullptr) return options;
  const auto rules = tokenizers::parse_tokenizer_rules(text->to_text());
  if (!rules) base::malformed("tokenizer/rules", no_rules(text->to_text()));
  if (!rules->words.empty()) {
    const Splitter::Spelled* const words = Splitter::find(rules->words);
    if (!words)
      base::unsupported("tokenizer/words", "texts are divided into words by the regular expression " +
                                               core::quoted(core::excerpt(rules->words[0], 200)) +
                                               (rules->words.size() == 1 ? "" : " and others") +
                                               ", which weighbridge does not know");
    options.words = words->name;
  }
  options.byte_level = rules->byte_level;
  options.whole_words = rules->whole_words;
  if (rules->byte_level && !options.prefix_space) options.prefix_space = false;
  options.adds_bos = options.adds_bos && rules->bos.value_or(true);
  options.adds_eos = options.adds_eos || rules->eos.value_or(false);
  options.leftmost = true;
  options.in_texts = rules->found;
  options.control = rules->control;
  options.ends = rules->ends;
  return options;
}

}  // namespace

WordPieceOptions word_piece_options(const Model& model, bool own, std::span<const std::string> ignore_settings) {
  WordPieceOptions out;
  out.ignore_settings.assign(ignore_settings.begin(), ignore_settings.end());
  const auto flag = [&](std::string_view key) {
    const Value* const value = model.attribute(key);
    return value == nullptr ? std::nullopt : value->as_bool();
  };
  const auto lower = flag(tokenizers::kLowerCase);
  out.lower_case = lower ? *lower : flag(std::string(kLlamaCppKeys) + "normalizer.lowercase").value_or(true);
  const auto strips = flag(tokenizers::kStripAccents);
  out.strip_accents = strips ? strips : flag(std::string(kLlamaCppKeys) + "normalizer.strip_accents");
  out.space_chinese = flag(tokenizers::kSpaceChinese).value_or(true);
  const Value* const text = model.attribute(tokenizers::kTokenizerRules);
  if (text == nullptr) return out;
  auto rules = tokenizers::parse_tokenizer_rules(text->to_text());
  if (!rules) base::malformed("tokenizer/rules", no_rules(text->to_text()));
  if (!own) rules->frame.reset(), rules->added.reset();
  out.rules = tokenizers::text_of(*rules);
  return out;
}

Described describe(const Model& model, const BytePairOptions& options) {
  if (auto own = model.tokenizer()) {
    BytePairOptions with = own->kind == Tokenizer::Kind::wordpiece ? options : with_rules(model, options);
    return {std::move(own), std::move(with)};
  }
  if (const Value* const kind = model.attribute(std::string(kLlamaCppKeys) + "model");
      !kind || kind->to_text() == "none")
    return {nullptr, options};
  return Reading(model).read(options);
}

}  // namespace weighbridge::tokenizers

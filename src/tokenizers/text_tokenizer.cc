// SPDX-License-Identifier: Apache-2.0
// The public TextTokenizer: picks a model's tokenizer, limits the length of texts and names ids. Leaves encoding to
// WordPiece and BytePair.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "base/fail.h"
#include "core/reading/encoder_settings.h"
#include "tokenizers/described.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {
namespace {

using Any = std::variant<WordPiece, BytePair>;

WordPiece word_piece(const Model& model, const Tokenizer& from, bool own, const TextTokenizerOptions& options) {
  return WordPiece(from, tokenizers::word_piece_options(model, own, options.ignore_settings));
}

Any tokenizer_of(const Model& model, const TextTokenizerOptions& options, std::vector<std::string>& notes) {
  if (options.vocabulary != nullptr) return word_piece(model, *options.vocabulary, false, options);
  notes = core::require_tokenizer_settings(model, options.ignore_settings, "tokenizer/setting");
  const auto [own, byte_pair] = tokenizers::describe(model, options.byte_pair);
  if (own == nullptr)
    base::misuse("no-vocabulary", "the model has no vocabulary: give it one, as a vocab.txt has it",
                 base::option_hint("vocabulary", "vocab.txt"));
  if (own->kind == Tokenizer::Kind::wordpiece) return word_piece(model, *own, true, options);
  if (options.offsets)
    base::misuse("offsets",
                 "the model has a " + std::string(name(own->kind)) + " tokenizer, and only wordpiece has offsets");
  return BytePair(*own, byte_pair);
}

// 0: the model has no position embeddings, so there is no limit.
std::uint64_t length_of(const Model& model) {
  for (const char* const name : {"embeddings.position_embeddings.weight", "bert.embeddings.position_embeddings.weight",
                                 "position_embd.weight"}) {
    const auto positions = model.find(name);
    if (!positions || !positions->has_shape() || positions->shape().empty()) continue;
    const Value* const said = model.attribute("max_seq_length");
    return tokenizers::usual_length(said ? said->as_u64() : std::nullopt, positions->shape()[0]);
  }
  return 0;
}

TokenizedText tokenized(const WordPiece& tokenizer, std::string_view text, const TextTokenizerOptions& options) {
  TokenizedText out;
  const Encoded what =
      tokenizer.encode_all(text, out.ids, {.max_length = options.max_length, .special = options.special},
                           options.offsets ? &out.offsets : nullptr);
  WordPiece::to_code_points(text, out.offsets);
  for (const std::uint32_t id : out.ids) out.tokens.push_back(tokenizer.token(id).value_or("[UNK]"));
  out.truncated = what.truncated;
  out.replaced = what.replaced;
  return out;
}

// The bytes of a token, or a name for BOS and UNK if they have none.
std::string_view spelled(const BytePair& tokenizer, std::uint32_t id) {
  if (const auto bytes = tokenizer.token(id)) return *bytes;
  return id == tokenizer.bos() ? "<bos>" : id == tokenizer.unk() ? "<unk>" : "";
}

TokenizedText tokenized(const BytePair& tokenizer, std::string_view text, const TextTokenizerOptions& options) {
  const std::uint64_t maximum = options.max_length;
  TokenizedText out;
  // One extra id signals truncation.
  const bool eos = options.special && tokenizer.adds_eos();
  out.ids = tokenizer.encode(text, {.bos = options.special, .eos = eos, .max_length = maximum == 0 ? 0 : maximum + 1});
  out.truncated = maximum != 0 && out.ids.size() > maximum;
  if (out.truncated) out.ids.resize(base::to_size(maximum));
  if (out.truncated && eos) out.ids.back() = tokenizer.eos();
  for (const std::uint32_t id : out.ids) out.tokens.push_back(spelled(tokenizer, id));
  return out;
}

}  // namespace

struct TextTokenizer::Rep {
  Any tokenizer;
  TextTokenizerOptions options;  // `vocabulary` is null: it has been read already
  std::vector<std::string> notes;
};

TextTokenizer::TextTokenizer(const Model& model, const TextTokenizerOptions& options) {
  std::vector<std::string> notes;
  Rep made{tokenizer_of(model, options, notes), options, {}};
  made.notes = std::move(notes);
  made.options.vocabulary = nullptr;
  if (options.max_length == 0 && std::holds_alternative<WordPiece>(made.tokenizer))
    made.options.max_length = length_of(model);
  rep_ = std::make_shared<const Rep>(std::move(made));
}

const std::vector<std::string>& TextTokenizer::notes() const noexcept { return rep_->notes; }

TokenizedText TextTokenizer::operator()(std::string_view text) const {
  return std::visit([&](const auto& tokenizer) { return tokenized(tokenizer, text, rep_->options); }, rep_->tokenizer);
}

std::string TextTokenizer::decode(std::span<const std::uint32_t> ids) const {
  return std::visit([&](const auto& tokenizer) { return tokenizer.decode(ids); }, rep_->tokenizer);
}

std::uint32_t TextTokenizer::size() const noexcept {
  return std::visit([](const auto& tokenizer) { return tokenizer.size(); }, rep_->tokenizer);
}

}  // namespace weighbridge

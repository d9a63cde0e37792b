// SPDX-License-Identifier: Apache-2.0
// The public Embedder: its options, the choice of the family, the checks of what a caller asks.
#include "weighbridge/embed.h"

#include <string>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/own_names.h"
#include "core/draft.h"
#include "core/words.h"
#include "runtime/embed/family.h"
#include "tokenizers/described.h"
#include "weighbridge/convert.h"

namespace weighbridge {
namespace {

constexpr Pooling kPoolings[] = {Pooling::mean, Pooling::cls, Pooling::max};
constexpr Precision kPrecisions[] = {Precision::f32, Precision::f16, Precision::bf16, Precision::int8};

template <class Enum, std::size_t N> std::optional<Enum> of_name(const Enum (&all)[N], std::string_view text) noexcept {
  for (const Enum one : all)
    if (name(one) == text) return one;
  return std::nullopt;
}

}  // namespace

std::string_view name(Pooling pooling) noexcept {
  switch (pooling) {
    case Pooling::mean: return "mean";
    case Pooling::cls: return "cls";
    case Pooling::max: return "max";
  }
  return "";
}
std::string_view name(Precision precision) noexcept {
  switch (precision) {
    case Precision::f32: return "f32";
    case Precision::f16: return "f16";
    case Precision::bf16: return "bf16";
    case Precision::int8: return "int8";
  }
  return "";
}

std::optional<Pooling> pooling_from_name(std::string_view text) noexcept { return of_name(kPoolings, text); }
std::optional<Precision> precision_from_name(std::string_view text) noexcept { return of_name(kPrecisions, text); }

std::vector<std::string_view> EmbedOptions::words(std::string_view option) {
  std::vector<std::string_view> out;
  if (option == "pooling")
    for (const Pooling one : kPoolings) out.push_back(name(one));
  if (option == "precision")
    for (const Precision one : kPrecisions) out.push_back(name(one));
  if (option == "allow") out.push_back(name(LossKind::part));
  return out;
}

void EmbedOptions::set(std::string_view option, std::string_view text) {
  core::check_word(option, text, words(option));
  if (option == "pooling") pooling = pooling_from_name(text);
  if (option == "precision") precision = *precision_from_name(text);
  if (option == "allow") allow_part = true;
}

namespace embed {

void fail(std::string_view rule, std::string_view tensor, std::string message) {
  Finding finding;
  finding.rule = "embed/" + std::string(rule);
  finding.kind = Kind::malformed;
  finding.tensor = std::string(tensor);
  finding.has_tensor = !tensor.empty();
  finding.message = std::move(message);
  throw Error(std::move(finding));
}

[[noreturn]] void bad_key(std::string_view key, const Value& value, const std::string& wanted) {
  fail("key", {}, "the model's metadata say '" + std::string(key) + "' is " + value.to_text() + ", where " + wanted);
}

std::optional<std::uint64_t> positive(std::string_view key, const Value* value) {
  if (value == nullptr) return std::nullopt;
  const auto number = value->as_u64();
  if (!number || *number == 0) bad_key(key, *value, "a positive whole number is needed");
  return number;
}

std::optional<bool> truth(std::string_view key, const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (!value->as_bool()) bad_key(key, *value, "true or false is needed");
  return value->as_bool();
}

namespace {

// WordPiece needs [CLS] and [SEP], which a vocabulary whose texts have no frame may lack. They stand for [UNK] then.
Tokenizer with_frame(Tokenizer vocabulary) {
  const auto find = [&](std::string_view role, std::string_view text) -> std::optional<std::uint32_t> {
    for (const auto& [name, id] : vocabulary.special)
      if (name == role) return id;
    for (std::size_t i = vocabulary.tokens.size(); i-- > 0;)
      if (vocabulary.tokens[i] == text)
        return vocabulary.ids.empty() ? static_cast<std::uint32_t>(i) : vocabulary.ids[i];
    return std::nullopt;
  };
  if (const auto id = find("unk", "[UNK]"); id && vocabulary.kind == Tokenizer::Kind::wordpiece)
    for (const auto& [role, text] : {std::pair{"cls", "[CLS]"}, std::pair{"sep", "[SEP]"}})
      if (!find(role, text)) vocabulary.special.emplace_back(role, *id);
  return vocabulary;
}

}  // namespace

std::optional<WordPiece> make_tokenizer(const Model& model, const EmbedOptions& options, const TextRules& rules,
                                        std::uint64_t rows, const std::string& table) {
  const auto own = options.vocabulary != nullptr ? nullptr : tokenizers::describe(model).tokenizer;
  const Tokenizer* vocabulary = options.vocabulary != nullptr ? options.vocabulary : own.get();
  if (vocabulary == nullptr) return std::nullopt;
  WordPiece out(rules.frames ? *vocabulary : with_frame(*vocabulary), {.lower_case = rules.lower_case});
  if (out.size() > rows)
    fail("vocabulary", table,
         "the vocabulary has ids up to " + std::to_string(out.size() - 1) + ", and tensor '" + table + "' has " +
             std::to_string(rows) + " rows in this model");
  return out;
}

}  // namespace embed

struct Embedder::Rep {
  Rep(const Model& opened, const EmbedOptions& options) {
    core::require_whole(opened, options.allow_part, "embed/part");
    const Model model = convert::as_encoder(opened);
    family = embed::is_word_table(model) ? embed::make_word_table(model, options) : embed::make_bert(model, options);
  }
  const embed::Family::Facts& facts() const noexcept { return family->facts(); }

  std::unique_ptr<embed::Family> family;
};

Embedder::Embedder(Model model, const EmbedOptions& options) : rep_(std::make_unique<Rep>(model, options)) {}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

std::uint64_t Embedder::dimension() const noexcept { return rep_->facts().dimension; }
std::uint64_t Embedder::max_length() const noexcept { return rep_->facts().max_length; }
Pooling Embedder::pooling() const noexcept { return rep_->facts().pooling; }
bool Embedder::normalize() const noexcept { return rep_->facts().normalize; }
Precision Embedder::precision() const noexcept { return rep_->facts().precision; }
unsigned Embedder::threads() const noexcept { return rep_->family->threads(); }
std::string Embedder::kind(const Context& context) const { return digests(context).kind; }
EmbedDigests Embedder::digests(const Context& context) const { return rep_->family->digests(context); }
void Embedder::require_kind(std::string_view other, const Context& context) const {
  if (const std::string own = kind(context); own != other)
    base::misuse("vectors", "the vectors are of the kind '" + std::string(other) +
                                "', and this model and its options make '" + own +
                                "': vectors of two kinds cannot be compared");
}
const WordPiece* Embedder::tokenizer() const noexcept { return rep_->family->tokenizer(); }

namespace {

void check_room(std::size_t texts, std::uint64_t dimension, std::size_t room) {
  if (room != texts * dimension)
    base::misuse("embed", "the vectors of " + std::to_string(texts) + " texts need room for " +
                              std::to_string(texts * dimension) + " numbers, and there is room for " +
                              std::to_string(room));
}

}  // namespace

void Embedder::embed(std::span<const std::string_view> texts, std::span<float> out, std::span<Embedded> what) const {
  if (!tokenizer())
    base::misuse("no-vocabulary", "the model has no vocabulary, which text needs: give one, or embed ids");
  check_room(texts.size(), dimension(), out.size());
  if (!what.empty() && what.size() != texts.size())
    base::misuse("embed", "there are " + std::to_string(texts.size()) + " texts, and room to tell of " +
                              std::to_string(what.size()));
  rep_->family->embed(texts, out, what);
}

std::vector<float> Embedder::embed(std::string_view text) const {
  std::vector<float> out(base::to_size(dimension()));
  embed(std::span(&text, 1), out);
  return out;
}

void Embedder::embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) const {
  const embed::Family::Facts& facts = rep_->facts();
  check_room(texts.size(), dimension(), out.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || texts[i].size() > facts.positions)
      base::misuse("embed", "sequence " + std::to_string(i) + " has " + std::to_string(texts[i].size()) +
                                " ids, where 1 to " + std::to_string(facts.positions) + " are possible");
    for (const std::uint32_t id : texts[i])
      if (id >= facts.vocabulary)
        base::misuse("embed", "sequence " + std::to_string(i) + " has the id " + std::to_string(id) +
                                  ", where the model knows " + std::to_string(facts.vocabulary));
  }
  rep_->family->embed_ids(texts, out);
}

}  // namespace weighbridge

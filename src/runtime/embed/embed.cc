// SPDX-License-Identifier: Apache-2.0
// The public Embedder: its options, the choice of the family, the checks of what a caller asks.
#include "weighbridge/embed.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/derived.h"
#include "convert/naming.h"
#include "core/model/draft.h"
#include "core/model/words.h"
#include "core/reading/encoder_settings.h"
#include "core/writing/options.h"
#include "formats/huggingface/config.h"
#include "formats/huggingface/setting_judge.h"
#include "runtime/embed/family.h"
#include "tokenizers/described.h"
#include "tokenizers/tokenizer_rules.h"
#include "weighbridge/convert.h"

namespace weighbridge {
namespace {

constexpr Pooling kPoolings[] = {Pooling::mean,          Pooling::cls,          Pooling::max,
                                 Pooling::mean_sqrt_len, Pooling::weightedmean, Pooling::lasttoken};
constexpr std::size_t kMaxListed = 2000;  // bytes of a message
constexpr Precision kPrecisions[] = {Precision::f32, Precision::f16, Precision::bf16, Precision::int8};

constexpr core::Bound<EmbedOptions> kBound[] = {
#define WB_EMBED_OPTION(MEMBER, ...) WB_BOUND(EmbedOptions, MEMBER)
#include "core/writing/option_rows.def"
};

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
    case Pooling::mean_sqrt_len: return "mean_sqrt_len";
    case Pooling::weightedmean: return "weightedmean";
    case Pooling::lasttoken: return "lasttoken";
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

void EmbedOptions::set(std::string_view option, std::string_view text) {
  core::set<EmbedOptions>(*this, OptionOf::embed, kBound, option, text);
}

namespace embed {

void fail(std::string_view rule, std::string_view tensor, std::string message) {
  base::malformed("embed/" + std::string(rule), std::move(message), tensor);
}

[[noreturn]] void bad_key(std::string_view key, const Value& value, const std::string& wanted) {
  fail("key", {}, "the model's metadata says '" + std::string(key) + "' is " + value.to_text() + ", where " + wanted);
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
  WordPieceOptions with = tokenizers::word_piece_options(model, options.vocabulary == nullptr, options.ignore_settings);
  if (options.lower_case && with.lower_case != *options.lower_case && tokenizers::has_own_normalizer(with.rules))
    base::unsupported("tokenizer/lower-case", "the model's normalizer is not a BERT's, and cannot change the case");
  with.lower_case = rules.lower_case;
  WordPiece out(rules.frames ? *vocabulary : with_frame(*vocabulary), with);
  if (out.size() > rows)
    fail("vocabulary", table,
         "the vocabulary has ids up to " + std::to_string(out.size() - 1) + ", and tensor '" + table + "' has " +
             std::to_string(rows) + " rows in this model");
  return out;
}

}  // namespace embed

namespace {

// Not for any flag: what is computed is a BERT.
void refuse_other_models(const Model& model) {
  const Value* const type = model.attribute("hf.model_type");
  const Value* const classes = model.attribute("hf.architectures");
  const std::string text = type ? type->to_text() : std::string();
  if (type && text == "bert") return;
  if (type && text != "null")
    base::unsupported("embed/model-type", "config.json says 'model_type' is " + core::quoted(core::excerpt(text)) +
                                              ", and this build runs encoders of the type \"bert\"");
  if (classes && !huggingface::is_bert({}, classes->to_text()) && classes->to_text() != "null")
    base::unsupported("embed/model-type", "config.json says 'architectures' is " +
                                              core::excerpt(classes->to_text(), 80) +
                                              ", and this build runs those of a BERT");
}

// Refuses what the model's folder says and nobody follows here. Returns what is passed over, or not known.
std::vector<std::string> check_settings(const Model& model, const std::vector<std::string>& ignored) {
  const huggingface::SettingJudge judged = huggingface::check_settings(model);
  std::vector<std::string> out;
  std::string refused;
  std::string first;
  for (const core::OddSetting& each : judged.all_refused()) {
    if (core::passes(ignored, each)) {
      out.push_back(core::setting_text(each) + ": ignored as asked");
      continue;
    }
    if (first.empty()) first = each.key;
    if (refused.size() < kMaxListed)
      refused +=
          (refused.empty() ? "" : "; ") + core::setting_text(each) + (each.why.empty() ? "" : " (" + each.why + ")");
  }
  // Tensors of relative positions are refused in any case, so ignoring their setting would not help.
  bool relative = false;
  for (const Tensor& tensor : model)
    relative |= first == "position_embedding_type" && tensor.name().find(".distance_embedding.") != std::string::npos;
  if (!refused.empty())
    base::unsupported("embed/setting", "this build does not follow a setting of the model: " + refused,
                      relative ? Hint{} : base::option_hint("ignore-setting", first));
  for (const core::OddSetting& each : judged.all_unknown()) out.push_back(core::note_of(each));
  core::note_unmatched(ignored, judged.all_refused(), out);
  return out;
}

constexpr std::string_view kQuery = "query", kDocument = "document";  // prompts that every model has, if only empty

using Prompts = std::vector<std::pair<std::string, std::string>>;

const std::string* find_prompt(const Prompts& prompts, std::string_view name) noexcept {
  const auto found = std::ranges::find(prompts, name, &Prompts::value_type::first);
  return found == prompts.end() ? nullptr : &found->second;
}

Prompts read_prompts(const Model& model) {
  const Value* const value = model.attribute(core::kPrompts);
  if (value == nullptr) return {};
  auto prompts = core::parse_prompts(value->to_text());
  if (!prompts) embed::bad_key(core::kPrompts, *value, "an object of texts is needed");
  return *std::move(prompts);
}

}  // namespace

struct Embedder::Rep {
  Rep(const Model& opened, const EmbedOptions& options) {
    core::require_whole(opened, options.allow_part, "embed/part");
    const Model model = convert::with_norm_names(convert::with_modules(convert::as_encoder(opened), {}).model).model;
    const bool table = embed::is_word_table(model);
    if (!table) refuse_other_models(model);
    notes = check_settings(model, options.ignore_settings);
    set_prompts(model, options);
    family = table ? embed::make_word_table(model, options) : embed::make_bert(model, options);
  }
  const embed::Family::Facts& facts() const noexcept { return family->facts(); }

  void set_prompts(const Model& model, const EmbedOptions& options) {
    all_prompts = read_prompts(model);
    if (options.prompt) {
      prompts.fill(*options.prompt);
    } else if (options.prompt_name) {
      const std::string* const found = find_prompt(all_prompts, *options.prompt_name);
      const bool usual = *options.prompt_name == kQuery || *options.prompt_name == kDocument;
      if (found == nullptr && !usual) {
        std::string names;
        for (const auto& [name, text] : all_prompts)
          names += (names.empty() ? "" : ", ") + core::quoted(core::excerpt(name));
        base::misuse("prompt-name", "the model has no prompt " + core::quoted(core::excerpt(*options.prompt_name)) +
                                        (names.empty() ? ": it has none" : ": it has " + names));
      }
      if (found != nullptr) prompts.fill(*found);
    } else {
      // As the package has it: a query and a document never take the default prompt.
      const auto text_of = [&](std::string_view name) {
        const std::string* const found = find_prompt(all_prompts, name);
        return found ? *found : std::string();
      };
      const Value* const standard = model.attribute(core::kDefaultPrompt);
      prompts = {standard ? text_of(standard->to_text()) : std::string(), text_of(kQuery), text_of(kDocument)};
    }
  }

  std::unique_ptr<embed::Family> family;
  std::vector<std::string> notes;
  Prompts all_prompts;
  std::array<std::string, 3> prompts;  // of each role
};

Embedder::Embedder(Model model, const EmbedOptions& options) : rep_(std::make_unique<Rep>(model, options)) {}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

std::uint64_t Embedder::dimension() const noexcept { return rep_->facts().dimension; }
std::uint64_t Embedder::max_length() const noexcept { return rep_->facts().max_length; }
Pooling Embedder::pooling() const noexcept { return rep_->facts().pooling.front(); }
std::string Embedder::poolings() const { return embed::text_of(rep_->facts().pooling); }
const std::vector<std::pair<std::string, std::string>>& Embedder::prompts() const noexcept { return rep_->all_prompts; }
std::string_view Embedder::prompt(TextRole role) const noexcept {
  return rep_->prompts[static_cast<std::size_t>(role)];
}
const std::vector<std::string>& Embedder::notes() const noexcept { return rep_->notes; }
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

void Embedder::embed(std::span<const std::string_view> texts, std::span<float> out, std::span<Embedded> what,
                     std::optional<std::string_view> prompt) const {
  if (!tokenizer())
    base::misuse("no-vocabulary", "the model has no vocabulary, which text needs: give one, or embed ids");
  check_room(texts.size(), dimension(), out.size());
  if (!what.empty() && what.size() != texts.size())
    base::misuse("embed", "there are " + std::to_string(texts.size()) + " texts, and room to tell of " +
                              std::to_string(what.size()));
  rep_->family->embed(texts, prompt.value_or(this->prompt()), out, what);
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

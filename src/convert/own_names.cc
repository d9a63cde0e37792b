// SPDX-License-Identifier: Apache-2.0
// Renames tensors, and collects the keys of SLM and of EMBD from the metadata of llama.cpp or of a config.json.
#include "convert/naming.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "convert/llama_cpp.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "formats/slm/hyper.h"
#include "formats/slm/layout.h"
#include "formats/slm/names.h"
#include "tokenizers/described.h"
#include "tokenizers/tokenizer_rules.h"
#include "weighbridge/scheme.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

using slm_format::Role;

constexpr std::string_view kArchitecture = "general.architecture", kBlock = "blk.", kGenerate = "generate/",
                           kEmbed = "embed/";

[[noreturn]] void refuse(std::string_view what, const std::string& why, std::string_view user = kGenerate) {
  base::unsupported(std::string(user) + std::string(what), "weighbridge does not run the model: " + why);
}
[[noreturn]] void fail(std::string_view what, std::string_view tensor, std::string message,
                       std::string_view user = kGenerate) {
  base::malformed(std::string(user) + std::string(what), std::move(message), tensor);
}

std::string shown(const Value& value) { return core::quoted(core::excerpt(value.to_text())); }

// 3 of "blk.3.attn_q.weight".
std::optional<std::uint32_t> layer_of(std::string_view name) {
  if (!name.starts_with(kBlock)) return std::nullopt;
  const std::size_t dot = name.find('.', kBlock.size());
  const auto layer = dot == name.npos ? std::nullopt : wire::as_u64(name.substr(kBlock.size(), dot - kBlock.size()));
  return layer && *layer < UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*layer)) : std::nullopt;
}

// A layer beyond the number in the metadata would be ignored in every run.
void refuse_beyond(std::string_view name, std::uint64_t layer, std::uint64_t layers, std::string_view user) {
  if (layer >= layers)
    refuse("tensors",
           "it has a tensor " + core::quoted(core::excerpt(name)) + ", and its metadata says that it has " +
               std::to_string(layers) + (layers == 1 ? " block" : " blocks"),
           user);
}

// A view with SLM's names.
class Respelled {
 public:
  explicit Respelled(const Model& model) : model_(model) { draft_.begin_view(model); }

  Model from_gguf() {
    const std::string text = model_.attribute(kArchitecture)->to_text();
    if (text != "llama") refuse("architecture", "its architecture is " + core::quoted(core::excerpt(text)));
    refuse_extras();
    const Tensor words = require("token_embd.weight");
    if (!words.has_shape() || words.shape().size() != 2) fail("shape", words.name(), "the embeddings are not a matrix");
    const std::uint64_t hidden = words.shape()[1], heads = count("attention.head_count");
    agree("embedding_length", hidden);
    agree("vocab_size", words.shape()[0]);
    layers_ = count("block_count");
    set("vocab_size", words.shape()[0]);
    set("hidden_size", hidden);
    set("layer_count", layers_);
    set("head_count", heads);
    set("kv_head_count", count("attention.head_count_kv", heads));
    set("head_dim", count("attention.key_length", std::max<std::uint64_t>(hidden / heads, 1)));
    set("ffn_size", count("feed_forward_length"));
    set("max_context", count("context_length"));
    set("rope_theta", real("rope.freq_base", 10000));
    set("rms_norm_epsilon", real("attention.layer_norm_rms_epsilon"));
    set("flags", model_.find("output.weight") ? 0 : 1);
    rotation(count("attention.key_length", std::max<std::uint64_t>(hidden / heads, 1)));
    for (const Tensor& tensor : model_) add_gguf(tensor);
    return finish();
  }

  Model from_neutral() {
    check_folder();
    const auto words = slm_format::find_role(model_, Role::tok_embeddings, 0);
    if (!words || !words->has_shape() || words->shape().size() != 2)
      fail("missing-tensor", "tok_embeddings.weight", "the model has no matrix of embeddings");
    const std::uint64_t hidden = words->shape()[1], heads = stated("head_count");
    const std::uint64_t head = stated("head_dim", std::max<std::uint64_t>(hidden / heads, 1));
    set("vocab_size", words->shape()[0]);
    set("hidden_size", hidden);
    set("layer_count", stated("layer_count"));
    set("head_count", heads);
    set("kv_head_count", stated("kv_head_count", heads));
    set("head_dim", head);
    set("ffn_size", stated("ffn_size"));
    set("max_context", stated("max_context"));
    set("rms_norm_epsilon", stated_real("rms_norm_epsilon", 1e-6));
    set("flags", slm_format::find_role(model_, Role::output, 0) ? 0 : 1);
    set("rope_theta", folder_rotation(head));
    for (const Tensor& tensor : model_) add_neutral(tensor, head);
    return finish();
  }

 private:
  Model finish() {
    for (const auto& [key, value] : model_.attributes())
      if (!draft_.attribute(key)) draft_.set_attribute(key, value);
    if (!draft_.index_names().empty()) fail("tensors", {}, "two tensors of the model would have the same name");
    return draft_.finish();
  }

  void set(std::string_view field, std::uint64_t number) {
    draft_.set_attribute(std::string(slm_format::kPrefix) + std::string(field), Value::integer(number));
  }
  void set(std::string_view field, int flag) { set(field, static_cast<std::uint64_t>(flag)); }
  void set(std::string_view field, double number) {
    draft_.set_attribute(std::string(slm_format::kPrefix) + std::string(field), Value::real(number, DType::f64));
  }

  static std::uint64_t whole(const std::string& key, const Value* value, std::optional<std::uint64_t> otherwise) {
    const auto number = value ? value->as_u64() : otherwise;
    if (number && *number > 0 && *number <= UINT32_MAX) return *number;
    if (!value) fail("missing-key", {}, "the model's metadata have no '" + key + "'");
    fail("key", {},
         "the model's metadata says '" + key + "' is " + shown(*value) + ", where a positive whole number is needed");
  }
  static double positive(const std::string& key, const Value* value, std::optional<double> otherwise) {
    const auto number = value ? value->as_f64() : otherwise;
    if (number && std::isfinite(*number) && *number > 0) return *number;
    if (!value) fail("missing-key", {}, "the model's metadata have no '" + key + "'");
    fail("key", {},
         "the model's metadata says '" + key + "' is " + shown(*value) + ", where a positive number is needed");
  }

  // ---- GGUF ----

  static std::string own(std::string_view key) { return "llama." + std::string(key); }
  const Value* said(std::string_view key) const { return model_.attribute(own(key)); }
  std::uint64_t count(std::string_view key, std::optional<std::uint64_t> otherwise = {}) const {
    return whole(own(key), said(key), otherwise);
  }
  double real(std::string_view key, std::optional<double> otherwise = {}) const {
    return positive(own(key), said(key), otherwise);
  }
  // A number that must agree with the shape of the embeddings.
  void agree(std::string_view key, std::uint64_t there) const {
    if (count(key, there) != there)
      fail("key", "token_embd.weight",
           "the model's metadata says '" + own(key) + "' is " + shown(*said(key)) + ", and its embeddings " +
               std::to_string(there));
  }
  Tensor require(const std::string& name) const {
    const auto found = model_.find(name);
    if (!found) fail("missing-tensor", name, "the model has no tensor '" + name + "'");
    return *found;
  }

  // Keys that change what is computed.
  void refuse_extras() const {
    for (const std::string_view key : {"expert_count", "expert_used_count", "attention.sliding_window"})
      if (const Value* const value = said(key); value && value->as_u64() != 0U)
        refuse("key", "'" + own(key) + "' is " + shown(*value));
    for (const std::string_view key : {"attention.scale", "logit_scale", "residual_scale", "embedding_scale"})
      if (const Value* const value = said(key); value && value->as_f64() != 0.0 && value->as_f64() != 1.0)
        refuse("key", "'" + own(key) + "' is " + shown(*value));
  }

  void rotation(std::uint64_t head) {
    if (count("rope.dimension_count", head) != head) refuse("rotation", "only a part of each head is rotated");
    const Value* const type = said("rope.scaling.type");
    const std::string kind = type ? type->to_text() : said("rope.scale_linear") ? "linear" : "none";
    if (kind == "none") return;
    if (kind != "linear") refuse("rotation", "its rotation is scaled by " + core::quoted(core::excerpt(kind)));
    const Value* const factor = said("rope.scaling.factor");
    set("rope_factor", positive(own("rope.scaling.factor"), factor ? factor : said("rope.scale_linear"), 1.0));
  }

  void add_gguf(const Tensor& tensor) {
    const std::string_view name = tensor.name();
    for (std::size_t r = 0; r < std::size(kLlamaNames) && name.ends_with(kWeight); ++r) {
      const std::string_view word = kLlamaNames[r];
      const auto role = static_cast<Role>(r);
      if (r < slm_format::kModelRoles) {
        if (name == std::string(word) + std::string(kWeight)) return adopt(tensor, slm_format::spell(role, 0));
        continue;
      }
      if (const auto layer = layer_of(name); layer && name == in_block(*layer, word, kWeight)) {
        refuse_beyond(name, *layer, layers_, kGenerate);
        return adopt(tensor, slm_format::spell(role, *layer));
      }
    }
    if (name == kRopeFactors) return adopt(tensor, std::string(name));
    if (slm_format::is_rotary_table(name)) return;
    refuse("tensors", "it has a tensor " + core::quoted(core::excerpt(name)));
  }
  void adopt(const Tensor& tensor, const std::string& name) { draft_.adopt(name, tensor); }

  // ---- Hugging Face, llama2.c ----

  std::uint64_t stated(std::string_view field, std::optional<std::uint64_t> otherwise = {}) const {
    const auto found = slm_format::find_stated(model_, field);
    return whole(found ? found->key : std::string(field), found ? found->value : nullptr, otherwise);
  }
  double stated_real(std::string_view field, std::optional<double> otherwise = {}) const {
    const auto found = slm_format::find_stated(model_, field);
    return positive(found ? found->key : std::string(field), found ? found->value : nullptr, otherwise);
  }

  void check_folder() const {
    struct Demand {
      std::string_view key, first, second;
    };
    constexpr Demand kDemands[] = {
        {"hf.model_type", "llama", "llama"},      {"hf.hidden_act", "silu", "swish"},
        {"hf.attention_bias", "false", "false"},  {"hf.mlp_bias", "false", "false"},
        {"hf.partial_rotary_factor", "1.0", "1"}, {"hf.quantization_config", "null", "null"}};
    for (const auto& [key, first, second] : kDemands)
      if (const Value* const value = model_.attribute(key);
          value && value->to_text() != first && value->to_text() != second && value->to_text() != "null")
        refuse("key", "'" + std::string(key.substr(3)) + "' is " + shown(*value));
    if (const Value* const unheld = model_.attribute(tokenizers::kTokenizerUnheld))
      refuse("tokenizer", "its tokenizer does what this one does not: " + unheld->to_text());
  }

  double folder_rotation(std::uint64_t head) {
    double theta = stated_real("rope_theta", 10000);
    const auto scaling = stated_rotation(model_, theta);
    if (!scaling) return theta;
    theta = *scaling->theta;
    if (!(theta > 0) || !std::isfinite(theta)) fail("key", {}, "rope_theta is not a positive number");
    switch (scaling->kind) {
      case RopeScaling::Kind::none: break;
      case RopeScaling::Kind::linear: set("rope_factor", scaling->factor); break;
      case RopeScaling::Kind::llama3:
        if (head <= kMaxHead) add_values(draft_, kRopeFactors, rope_factors(*scaling, theta, head));
        break;
      case RopeScaling::Kind::other: refuse("rotation", "its rotation is scaled by " + scaling->value_text);
    }
    return theta;
  }

  void add_neutral(const Tensor& tensor, std::uint64_t head) {
    const std::string_view name = tensor.name();
    if (slm_format::is_rotary_table(name)) return;
    const auto respelled = slm_format::from_hugging_face(name);
    if (!respelled) {
      if (slm_format::is_bias(model_, name)) refuse("tensors", "it has a tensor " + core::quoted(core::excerpt(name)));
      return adopt(tensor, std::string(name));
    }
    if (!respelled->half_split) return adopt(tensor, respelled->name);
    if (!has_rows_to_pair(tensor, head))
      fail("shape", name,
           "the number of rows of tensor '" + std::string(name) + "' is not a multiple of the head size, " +
               std::to_string(head));
    add_paired_rows(draft_, respelled->name, tensor, head);
  }

  // Elements of a head, far more than real ones have: bounds the table of factors.
  static constexpr std::uint64_t kMaxHead = 65536;
  const Model& model_;
  std::uint64_t layers_ = 0;  // of a GGUF
  core::Draft draft_;
};

// The Hugging Face name for a llama.cpp name; nullopt if no tensor of a BERT has it.
std::optional<std::string> hugging_face_name(std::string_view name) {
  const std::string_view tail = name.ends_with(kBias) ? kBias : kWeight;
  if (!name.ends_with(tail)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - tail.size());
  if (const auto row = std::ranges::find(kBertNames, stem, &Respelling::gguf); row != std::end(kBertNames))
    return std::string(row->folder) + std::string(tail);
  const std::size_t dot = stem.starts_with(kBlock) ? stem.find('.', kBlock.size()) : stem.npos;
  if (dot == stem.npos || !wire::as_u64(stem.substr(kBlock.size(), dot - kBlock.size()))) return std::nullopt;
  const auto row = std::ranges::find(kBertLayerNames, stem.substr(dot + 1), &Respelling::gguf);
  if (row == std::end(kBertLayerNames)) return std::nullopt;
  return std::string(kBertLayer) + std::string(stem.substr(kBlock.size(), dot - kBlock.size() + 1)) +
         std::string(row->folder) + std::string(tail);
}

}  // namespace

Model as_slm(const Model& given) {
  const Model model = logical(given);
  core::require_values(model, "this version does not decode them, so it cannot run the model", "generate");
  if (model.attribute(std::string(slm_format::kPrefix) + "hidden_size")) return model;
  if (model.attribute(kArchitecture)) return Respelled(model).from_gguf();
  if (slm_format::find_role(model, Role::tok_embeddings, 0)) return Respelled(model).from_neutral();
  return model;  // the next step reports what is missing
}

std::string given_tensor(const Model& model, std::string_view name) {
  const std::optional<std::uint32_t> layer = slm_format::layer_of(name);
  for (std::size_t r = 0; r < std::size(kLlamaNames) && model.attribute(kArchitecture); ++r) {
    const bool in_layer = r >= slm_format::kModelRoles;
    if (in_layer != layer.has_value() || slm_format::spell(static_cast<Role>(r), layer.value_or(0)) != name) continue;
    return in_layer ? in_block(*layer, kLlamaNames[r], kWeight) : std::string(kLlamaNames[r]) + std::string(kWeight);
  }
  return std::string(name);
}

std::string given_key(const Model& model, std::string_view field) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"vocab_size", "vocab_size"},
      {"hidden_size", "embedding_length"},
      {"layer_count", "block_count"},
      {"head_count", "attention.head_count"},
      {"kv_head_count", "attention.head_count_kv"},
      {"head_dim", "attention.key_length"},
      {"ffn_size", "feed_forward_length"},
      {"max_context", "context_length"},
      {"rope_theta", "rope.freq_base"},
      {"rope_factor", "rope.scaling.factor"},
      {"rms_norm_epsilon", "attention.layer_norm_rms_epsilon"}};
  if (model.attribute(kArchitecture)) {
    const auto row = std::ranges::find(kKeys, field, &std::pair<std::string_view, std::string_view>::first);
    if (row != std::end(kKeys)) return "llama." + std::string(row->second);
  }
  return std::string(slm_format::kPrefix) + std::string(field);
}

Model as_encoder(const Model& given) {
  const Model model = logical(given);
  core::require_values(model, "this version does not decode them, so it cannot run the model", "embed");
  const Value* const architecture = model.attribute(kArchitecture);
  if (!architecture || model.find("embeddings.word_embeddings.weight")) return model;
  if (architecture->to_text() != "bert")
    refuse("architecture", "its architecture is " + core::quoted(core::excerpt(architecture->to_text())), kEmbed);
  const auto said = [&](std::string_view key) { return model.attribute("bert." + std::string(key)); };
  if (const Value* const causal = said("attention.causal"); causal && causal->as_bool() != false)
    refuse("key", "'bert.attention.causal' is not false", kEmbed);
  core::Draft draft;
  draft.begin_view(model);
  const std::pair<std::string_view, std::string_view> keys[] = {{"block_count", "num_layers"},
                                                                {"attention.head_count", "num_attention_heads"},
                                                                {"attention.layer_norm_epsilon", "layer_norm_eps"}};
  for (const auto& [from, to] : keys)
    if (const Value* const value = said(from)) draft.set_attribute(std::string(to), Value::text(value->to_text()));
  if (const Value* const pooling = said("pooling_type")) {
    constexpr std::string_view kKinds[] = {"mean", "cls", "lasttoken"};
    const auto kind = pooling->as_u64().value_or(0);
    if (kind < 1 || kind > std::size(kKinds))
      refuse("pooling",
             "'bert.pooling_type' is " + core::quoted(core::excerpt(pooling->to_text())) +
                 ", and this build computes 1 (mean), 2 (cls) and 3 (the last token)",
             kEmbed);
    if (!model.attribute("pooling_mode"))
      draft.set_attribute("pooling_mode", Value::text(std::string(kKinds[kind - 1])));
  }
  for (const auto& [key, value] : model.attributes())
    if (!draft.attribute(key)) draft.set_attribute(key, value);
  const Value* const blocks = said("block_count");
  for (const Tensor& tensor : model) {
    const auto name = hugging_face_name(tensor.name());
    if (!name) refuse("tensors", "it has a tensor " + core::quoted(core::excerpt(tensor.name())), kEmbed);
    if (const auto layer = layer_of(tensor.name()))
      refuse_beyond(tensor.name(), *layer, blocks ? blocks->as_u64().value_or(0) : UINT64_MAX, kEmbed);
    draft.adopt(*name, tensor);
  }
  if (!draft.index_names().empty()) fail("tensors", {}, "two tensors of the model would have the same name", kEmbed);
  return draft.finish();
}

namespace {

// A format with names of its own, and the architecture that it holds.
struct Target {
  std::string_view format, architecture;
  Model (*view)(const Model&);
};
constexpr Target kTargets[] = {{"slm", "llama", as_slm}, {"embd", "bert", as_encoder}};
constexpr std::string_view kTokenizerKeys = "tokenizer.ggml.", kGeneral = "general.";

// Keys after "llama." and "bert." whose values the result states in its header or by its tensors. Unusual values of the
// last ones have been refused already.
constexpr std::string_view kHeld =
    "block_count context_length embedding_length feed_forward_length attention.head_count attention.head_count_kv "
    "attention.key_length attention.value_length vocab_size rope.dimension_count rope.freq_base "
    "attention.layer_norm_rms_epsilon attention.layer_norm_epsilon attention.causal pooling_type expert_count "
    "expert_used_count attention.sliding_window rope.scaling.type";
// Keys that describe the input file itself.
constexpr std::string_view kOfTheFile =
    "general.architecture general.file_type general.quantization_version general.alignment";

const Target* target_of(std::string_view format) {
  const auto at = std::ranges::find(kTargets, format, &Target::format);
  return at == std::end(kTargets) ? nullptr : at;
}

bool is_held(std::string_view key, std::string_view architecture) {
  if (key.starts_with(kTokenizerKeys) || core::has_word(kOfTheFile, key)) return true;
  if (!key.starts_with(architecture) || !key.substr(architecture.size()).starts_with('.')) return false;
  return core::has_word(kHeld, key.substr(architecture.size() + 1));
}

// How the model's tokenizer differs from a tokenizer with the same vocabulary in an .slm.
std::vector<std::string> differences(const tokenizers::Described& described) {
  std::vector<std::string> out;
  const BytePairOptions& own = described.options;
  if (!own.words.empty())
    out.push_back("merged across words, where the model divides texts into words as for " + core::quoted(own.words));
  if (!own.in_texts.empty())
    out.push_back("without the " + std::to_string(own.in_texts.size()) + " tokens that texts are searched for");
  if (!own.adds_bos) out.push_back("with BOS before each text");
  if (own.adds_eos) out.push_back("without EOS after each text");
  if (!own.ends.empty())
    out.push_back("with EOS as the only end of a generated text: " + std::to_string(own.ends.size()) +
                  " more ids end it");
  if (own.words.empty() && own.prefix_space != BytePair(*described.tokenizer).prefix_space())
    out.push_back(*own.prefix_space ? "without a space before each text" : "with a space before each text");
  return out;
}

void check_rotation(const Model& model, core::Derived& out) {
  constexpr std::string_view kWhy = "an .slm has rope_theta only, no scaling of the rotation";
  if (const Value* const factor = model.attribute(std::string(slm_format::kPrefix) + "rope_factor"))
    out.blockers.push_back({LossKind::attribute, core::indexed("attributes", "llama.rope.scaling.factor"),
                            factor->to_text(), std::string(kWhy)});
  if (const auto factors = model.find(kRopeFactors))
    out.blockers.push_back(
        {LossKind::unsupported, core::subject(*factors), std::string(factors->type_name()), std::string(kWhy)});
}

}  // namespace

bool needs_own_names(const Model& model, std::string_view format) {
  const Target* const target = target_of(format);
  return target != nullptr && model.attribute(kArchitecture) &&
         (model.find("token_embd.weight") || model.size() == 0);  // a vocabulary alone
}

core::Derived with_own_names(const Model& model, std::string_view format) {
  const Target& target = *target_of(format);
  core::Derived out{.model = model};
  const bool slm = target.view == as_slm;
  tokenizers::Described described;
  Model named;
  try {
    named = target.view(model);
    described = tokenizers::describe(model);
  } catch (const Error& error) {
    if (error.kind() != Kind::malformed && error.kind() != Kind::unsupported) throw;
    out.blockers.push_back({LossKind::unsupported, core::indexed("attributes", kArchitecture),
                            model.attribute(kArchitecture)->to_text(), error.finding().message});
    out.unseen = true;
    return out;
  }
  if (slm) check_rotation(named, out);
  core::Draft draft;
  draft.begin_view(named);
  for (const Tensor& tensor : named) draft.adopt(tensor.name(), tensor);
  for (const auto& [key, value] : named.attributes()) {
    if (is_held(key, target.architecture)) continue;
    if (slm && key.starts_with(kGeneral))
      out.changes.push_back({LossKind::attribute, core::indexed("attributes", key), core::excerpt(value.to_text()),
                             "left out: no run of it needs that"});
    else
      draft.set_attribute(key == "general.name" && !named.attribute("model_name") ? "model_name" : key, value);
  }
  if (described.tokenizer) {
    draft.set_tokenizer(*described.tokenizer);
    if (slm && described.tokenizer->kind != Tokenizer::Kind::wordpiece)
      for (std::string& difference : differences(described))
        out.losses.push_back({LossKind::tokenizer, "tokenizer", "its own rules", std::move(difference)});
  }
  std::uint32_t next = 0;
  for (const Tensor& tensor : model) {
    if (slm && slm_format::is_rotary_table(tensor.name()))
      out.changes.push_back({LossKind::layout, core::subject(tensor), std::string(tensor.type_name()),
                             "left out: rope_theta implies it"});
    else if (const std::string_view name = named.name(next++); name != tensor.name())
      out.changes.push_back({LossKind::name, core::subject(tensor), std::string(tensor.name()), std::string(name)});
  }
  draft.index_names();
  out.model = draft.finish();
  return out;
}

}  // namespace weighbridge::convert

// SPDX-License-Identifier: Apache-2.0
// Renames tensors, and collects SLM's fields from the metadata of llama.cpp or of a config.json.
#include "runtime/llama/source.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "convert/llama_cpp.h"
#include "core/draft.h"
#include "core/words.h"
#include "formats/slm/layout.h"
#include "formats/slm/names.h"
#include "formats/slm/neutral.h"
#include "runtime/llama/config.h"
#include "wire/json_reader.h"

namespace weighbridge::llama {
namespace {

using core::quoted;
using slm_format::Role;

constexpr std::string_view kArchitecture = "general.architecture";

[[noreturn]] void refuse(std::string_view what, const std::string& why) {
  base::unsupported("generate/" + std::string(what), "this program does not run the model: " + why);
}

std::string shown(const Value& value) { return quoted(core::excerpt(value.to_text())); }

// A view with SLM's names.
class Respelled {
 public:
  explicit Respelled(const Model& model) : model_(model) { draft_.begin_view(model); }

  Model from_gguf() {
    const std::string text = model_.attribute(kArchitecture)->to_text();
    if (text != "llama") refuse("architecture", "its architecture is " + quoted(core::excerpt(text)));
    refuse_extras();
    const Tensor words = require("token_embd.weight");
    if (!words.has_shape() || words.shape().size() != 2) fail("shape", words.name(), "the embeddings are no matrix");
    const std::uint64_t hidden = words.shape()[1], heads = count("attention.head_count");
    set("vocab_size", words.shape()[0]);
    set("hidden_size", hidden);
    set("layer_count", count("block_count"));
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
    judge_folder();
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
         "the model's metadata say '" + key + "' is " + shown(*value) + ", where a positive whole number is needed");
  }
  static double positive(const std::string& key, const Value* value, std::optional<double> otherwise) {
    const auto number = value ? value->as_f64() : otherwise;
    if (number && std::isfinite(*number) && *number > 0) return *number;
    if (!value) fail("missing-key", {}, "the model's metadata have no '" + key + "'");
    fail("key", {},
         "the model's metadata say '" + key + "' is " + shown(*value) + ", where a positive number is needed");
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
    if (kind != "linear") refuse("rotation", "its rotation is scaled by " + quoted(core::excerpt(kind)));
    const Value* const factor = said("rope.scaling.factor");
    set("rope_factor", positive(own("rope.scaling.factor"), factor ? factor : said("rope.scale_linear"), 1.0));
  }

  void add_gguf(const Tensor& tensor) {
    const std::string_view name = tensor.name();
    for (std::size_t r = 0; r < std::size(convert::kLlamaNames) && name.ends_with(convert::kWeight); ++r) {
      const std::string_view word = convert::kLlamaNames[r];
      const auto role = static_cast<Role>(r);
      if (r < slm_format::kModelRoles) {
        if (name == std::string(word) + std::string(convert::kWeight)) return adopt(tensor, slm_format::spell(role, 0));
        continue;
      }
      if (const auto layer = layer_of(name); layer && name == convert::in_block(*layer, word, convert::kWeight))
        return adopt(tensor, slm_format::spell(role, *layer));
    }
    if (name == convert::kRopeFactors) return adopt(tensor, std::string(name));
    if (slm_format::is_rotary_table(name)) return;
    refuse("tensors", "it has a tensor " + quoted(core::excerpt(name)));
  }
  // 3 of "blk.3.attn_q.weight".
  static std::optional<std::uint32_t> layer_of(std::string_view name) {
    constexpr std::string_view kBlock = "blk.";
    if (!name.starts_with(kBlock)) return std::nullopt;
    const std::size_t dot = name.find('.', kBlock.size());
    const auto layer = dot == name.npos ? std::nullopt : wire::as_u64(name.substr(kBlock.size(), dot - kBlock.size()));
    return layer && *layer < UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*layer)) : std::nullopt;
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

  void judge_folder() const {
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
    if (const Value* const unheld = model_.attribute(slm_format::kTokenizerUnheld))
      refuse("tokenizer", "its tokenizer does what this one does not: " + unheld->to_text());
  }

  double folder_rotation(std::uint64_t head) {
    double theta = stated_real("rope_theta", 10000);
    for (const std::string_view key : {"hf.rope_scaling", "hf.rope_parameters"}) {
      const Value* const value = model_.attribute(key);
      if (!value || value->to_text() == "null") continue;
      const convert::RopeScaling scaling = convert::parse_rope_scaling(value->to_text());
      theta = scaling.theta.value_or(theta);
      if (!(theta > 0) || !std::isfinite(theta)) fail("key", {}, "rope_theta is not a positive number");
      switch (scaling.kind) {
        case convert::RopeScaling::Kind::none: break;
        case convert::RopeScaling::Kind::linear: set("rope_factor", scaling.factor); break;
        case convert::RopeScaling::Kind::llama3:
          if (head <= kMostHead) convert::add_rope_factors(draft_, convert::rope_factors(scaling, theta, head));
          break;
        case convert::RopeScaling::Kind::other: refuse("rotation", "its rotation is scaled by " + shown(*value));
      }
    }
    return theta;
  }

  void add_neutral(const Tensor& tensor, std::uint64_t head) {
    const std::string_view name = tensor.name();
    if (slm_format::is_rotary_table(name)) return;
    const auto respelt = slm_format::from_hugging_face(name);
    if (!respelt) {
      if (slm_format::is_bias(model_, name)) refuse("tensors", "it has a tensor " + quoted(core::excerpt(name)));
      return adopt(tensor, std::string(name));
    }
    if (!respelt->half_split) return adopt(tensor, respelt->name);
    if (!convert::has_rows_to_pair(tensor, head))
      fail("shape", name,
           "the rows of tensor '" + std::string(name) + "' are no whole heads of " + std::to_string(head));
    convert::add_paired_rows(draft_, respelt->name, tensor, head);
  }

  static constexpr std::uint64_t kMostHead = 65536;
  const Model& model_;
  core::Draft draft_;
};

}  // namespace

Model as_slm(const Model& model) {
  if (model.attribute(std::string(slm_format::kPrefix) + "hidden_size")) return model;
  if (model.attribute(kArchitecture)) return Respelled(model).from_gguf();
  if (slm_format::find_role(model, Role::tok_embeddings, 0)) return Respelled(model).from_neutral();
  return model;  // the next step says what is missing
}

}  // namespace weighbridge::llama

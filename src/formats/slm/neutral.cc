// SPDX-License-Identifier: Apache-2.0
// The tables of keys, and the plan's items for each.
#include "formats/slm/hyper.h"

#include <algorithm>
#include <array>

#include "core/model/plan_text.h"
#include "core/writing/layout.h"
#include "tokenizers/tokenizer_rules.h"
#include "wire/json_reader.h"

namespace weighbridge::slm_format {
namespace {

using core::indexed;

constexpr std::string_view kFolder = "hf.";

struct Spelling {
  std::string_view field, neutral;
};
constexpr Spelling kSpellings[] = {
    {"flags", "tie_word_embeddings"},
    {"vocab_size", "vocab_size"},
    {"hidden_size", "hidden_size"},
    {"layer_count", "num_hidden_layers"},
    {"head_count", "num_attention_heads"},
    {"kv_head_count", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"ffn_size", "intermediate_size"},
    {"max_context", "max_position_embeddings"},
    {"rope_theta", "rope_theta"},
    {"rms_norm_epsilon", "rms_norm_eps"},
};

// A key that changes the model unless its value is one of these.
struct Demand {
  std::string_view key;
  std::array<std::string_view, 3> values;
  std::string_view sentence;
};
constexpr Demand kDemands[] = {
    {"model_type", {"llama"}, "an .slm is of the Llama architecture"},
    {"hidden_act", {"silu", "swish"}, "an .slm has the activation silu only"},
    {"attention_bias", {"false"}, "an .slm has no biases"},
    {"mlp_bias", {"false"}, "an .slm has no biases"},
    {"sliding_window", {"null"}, "an .slm attends to the whole context"},
    {"partial_rotary_factor", {"1", "1.0"}, "an .slm rotates the whole of each head"},
};

// Keys for training, loading and other programs, which do not affect a run.
constexpr std::string_view kNeedless[] = {
    "architectures",     "torch_dtype",    "dtype",         "transformers_version", "use_cache",
    "initializer_range", "pretraining_tp", "_name_or_path", "attention_dropout",    "use_sliding_window",
};
// Keys of ids that the tokenizer section holds.
struct SpecialId {
  std::string_view key, name;
};
constexpr SpecialId kSpecialIds[] = {{"bos_token_id", "bos"}, {"eos_token_id", "eos"}, {"pad_token_id", "pad"}};

bool is_null(const Value& value) { return value.kind() == Value::Kind::null || value.as_text() == "null"; }

std::string_view neutral(std::string_view key) noexcept {
  return key.starts_with(kFolder) ? key.substr(kFolder.size()) : key;
}

bool is_rotation(std::string_view key) noexcept { return key == "rope_scaling" || key == "rope_parameters"; }

class Judge {
 public:
  Judge(const Model& model, core::WriteLayout& out) : model_(model), out_(out) {}

  void judge(const std::string& key, const Value& value) {
    const std::string_view plain = neutral(key);
    const std::string text = value.to_text();
    if (is_rotation(plain)) {
      if (is_null(value) || parse_rotation(text).plain) return needless(key, text);
      return block(key, text, "an .slm has rope_theta only, no scaling of the rotation");
    }
    if (const auto demand = std::ranges::find(kDemands, plain, &Demand::key); demand != std::end(kDemands)) {
      if (std::ranges::find(demand->values, text) != demand->values.end()) return needless(key, text);
      return block(key, text, std::string(demand->sentence));
    }
    const bool pt = key == "format" && text == "pt";  // transformers' mark in the metadata of safetensors
    if (pt || std::ranges::find(kNeedless, plain) != std::end(kNeedless) || is_null(value)) return needless(key, text);
    if (const auto id = std::ranges::find(kSpecialIds, plain, &SpecialId::key); id != std::end(kSpecialIds))
      if (says_tokenizer(id->name, value)) return needless(key, text);
    out_.losses.push_back(
        {LossKind::attribute, indexed("attributes", key), text, "dropped: an .slm holds its header's fields only"});
  }

 private:
  void needless(const std::string& key, const std::string& text) {
    out_.changes.push_back(
        {LossKind::attribute, indexed("attributes", key), text, "left out: no run of it needs that"});
  }
  void block(const std::string& key, const std::string& text, std::string why) {
    out_.blockers.push_back({LossKind::attribute, indexed("attributes", key), text, std::move(why)});
  }
  bool says_tokenizer(std::string_view name, const Value& value) const {
    const auto tokenizer = model_.tokenizer();
    if (tokenizer == nullptr) return false;
    return std::ranges::any_of(tokenizer->special,
                               [&](const auto& each) { return each.first == name && value.as_u64() == each.second; });
  }

  const Model& model_;
  core::WriteLayout& out_;
};

}  // namespace

std::optional<Stated> find_stated(const Model& model, std::string_view field) {
  const auto spelling = std::ranges::find(kSpellings, field, &Spelling::field);
  std::string keys[] = {std::string(kPrefix) + std::string(field), {}, {}};
  if (spelling != std::end(kSpellings)) {
    keys[1] = spelling->neutral;
    keys[2] = std::string(kFolder) + keys[1];
  }
  for (std::string& key : keys)
    if (const Value* const value = key.empty() ? nullptr : model.attribute(key); value && !is_null(*value))
      return Stated{std::move(key), value};
  return std::nullopt;
}

Rotation parse_rotation(std::string_view json) {
  Rotation out{.plain = true};
  wire::JsonReader in(json);
  if (!in.enter_object()) return {};
  for (wire::JsonString key; in.next_key(key);) {
    wire::JsonString type;
    wire::JsonNumber theta;
    if (key.raw == "rope_theta" && in.read_number(theta))
      out.theta = wire::as_double(theta.raw);
    else if ((key.raw != "rope_type" && key.raw != "type") || !in.read_string(type) || type.raw != "default")
      return {};
  }
  return in.finish() ? out : Rotation{};
}

void check_others(const Model& model, const std::vector<std::string>& used, core::WriteLayout& out) {
  Judge judge(model, out);
  for (const auto& [key, value] : model.attributes())
    if (key != tokenizers::kTokenizerRules && key != tokenizers::kTokenizerUnheld &&
        std::ranges::find(used, key) == used.end())
      judge.judge(key, value);
}

}  // namespace weighbridge::slm_format

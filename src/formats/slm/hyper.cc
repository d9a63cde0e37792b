// SPDX-License-Identifier: Apache-2.0
// Derives the hyperparameters of the header.
#include "formats/slm/hyper.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "core/model/plan_text.h"
#include "core/writing/layout.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"
#include "tokenizers/tokenizer_rules.h"
#include "wire/json_reader.h"

namespace weighbridge::slm_format {
namespace {

using core::indexed;

// The default of transformers for a configuration without rope_theta.
constexpr float kUsualTheta = 10000;

class Deriver {
 public:
  Deriver(const Model& model, const Options& options, core::WriteLayout& out)
      : model_(model), options_(options), out_(out), before_(out.blockers.size()) {}

  Hyper run() {
    h_.model_type = u32("model_type").value_or(kModelType);
    h_.flags = flags();
    h_.special_token_count = u32("special_token_count").value_or(kMinSpecialTokens);
    h_.vocab_size = size_in_tensor("vocab_size", Role::tok_embeddings, 0);
    h_.hidden_size = size_in_tensor("hidden_size", Role::tok_embeddings, 1);
    h_.ffn_size = size_in_tensor("ffn_size", Role::w1, 0);
    h_.layer_count = layers();
    h_.head_count = stated("head_count");
    h_.max_context = stated("max_context");
    h_.rope_theta = theta();
    h_.rms_norm_epsilon = f32("rms_norm_epsilon");
    derive_head_dim();
    derive_kv();
    check_others(model_, used_, out_);
    if (out_.blockers.size() == before_) check();
    return {h_, kv_rows_};
  }

 private:
  static std::string key(std::string_view field) { return std::string(kPrefix) + std::string(field); }
  void block(const std::string& attribute, std::string from, std::string to) {
    out_.blockers.push_back({LossKind::attribute, indexed("attributes", attribute), std::move(from), std::move(to)});
  }
  void block_missing(std::string_view field, std::string why) { block(key(field), core::kAbsent, std::move(why)); }

  std::optional<Stated> stated_value(std::string_view field) {
    auto found = find_stated(model_, field);
    if (found) used_.push_back(found->key);
    return found;
  }

  std::optional<std::uint32_t> u32(std::string_view field) {
    const auto found = stated_value(field);
    if (!found) return std::nullopt;
    const auto number = found->value->as_u64();
    if (number && *number <= UINT32_MAX) return static_cast<std::uint32_t>(*number);
    block(found->key, found->value->to_text(), "a whole number below 2^32 is needed");
    return 0;
  }

  // Taken from slm.flags, or from an attribute that says whether the output is tied.
  std::uint32_t flags() {
    const auto found = find_stated(model_, "flags");
    const auto tied = found ? found->value->as_bool() : std::nullopt;
    if (!tied) return u32("flags").value_or(0);
    used_.push_back(found->key);
    return *tied ? kTiedOutput : 0;
  }

  // Newer configurations have it inside rope_parameters; the oldest do not have it.
  float theta() {
    if (find_stated(model_, "rope_theta")) {
      const float plain = f32("rope_theta");
      for (const auto& [name, value] : model_.attributes())
        if (const auto nested =
                name.ends_with("rope_parameters") ? parse_rotation(value.to_text()).theta : std::nullopt;
            nested && base::to_float(*nested) != plain)
          block(name, value.to_text(),
                "rope_theta says " + find_stated(model_, "rope_theta")->value->to_text() + ", and both cannot hold");
      return plain;
    }
    bool folder = false;
    for (const auto& [name, value] : model_.attributes()) {
      folder |= name == "hf.model_type";
      if (name != "hf.rope_parameters" && name != "rope_parameters") continue;
      const Rotation rotation = parse_rotation(value.to_text());
      if (!rotation.plain || !rotation.theta) continue;
      used_.push_back(name);
      return base::to_float(*rotation.theta);
    }
    if (!folder) return f32("rope_theta");
    out_.changes.push_back(
        {LossKind::attribute, indexed("attributes", "hf.rope_theta"), "none", "10000, as transformers takes it"});
    return kUsualTheta;
  }

  void derive_head_dim() {
    const std::uint32_t even = h_.head_count == 0 ? 0 : h_.hidden_size / h_.head_count;
    const auto found = find_stated(model_, "head_dim");
    h_.head_dim = u32("head_dim").value_or(even);
    if (found && found->key != key("head_dim") && h_.head_dim != even)
      block(found->key, found->value->to_text(),
            std::to_string(even) + ": the heads of an .slm share hidden_size evenly");
  }

  std::uint32_t stated(std::string_view field) {
    if (const auto value = u32(field)) return *value;
    block_missing(field, "the header of an .slm states it, and it cannot be derived from a tensor");
    return 0;
  }

  float f32(std::string_view field) {
    const auto found = stated_value(field);
    if (!found) {
      block_missing(field, "the header of an .slm states it, and it cannot be derived from a tensor");
      return 0;
    }
    const Value* const value = found->value;
    if (const auto number = value->as_f64()) {
      const float rounded = base::to_float(*number);
      // A text comes from a container without numbers. Its decimal stands for an f32, so rounding it to one is not a
      // loss.
      if (value->kind() != Value::Kind::text && static_cast<double>(rounded) != *number)
        out_.losses.push_back({LossKind::precision, indexed("attributes", found->key), value->to_text() + " (f64)",
                               Value::real(rounded, DType::f32).to_text() + " (f32)"});
      return rounded;
    }
    block(found->key, value->to_text(), "a number is needed");
    return 0;
  }

  // Taken from the attribute, else from a dimension of a tensor of rank 2.
  std::uint32_t size_in_tensor(std::string_view field, Role role, std::size_t dimension) {
    if (const auto value = u32(field)) return *value;
    const auto found = find_role(model_, role, 0);
    if (found && found->has_shape() && found->shape().size() == 2 && found->shape()[dimension] <= UINT32_MAX)
      return static_cast<std::uint32_t>(found->shape()[dimension]);
    block_missing(field, "neither this attribute nor a tensor \"" + spell(role, 0) + "\" of two dimensions has it");
    return 0;
  }

  std::uint32_t layers() {
    if (const auto value = u32("layer_count")) return *value;
    std::uint32_t layers = 0;
    for (std::uint32_t i = 0; i < model_.size(); ++i) {
      const auto n = layer_of(model_.name(i));
      if (n && *n < model_.size()) layers = std::max(layers, *n + 1);  // a model cannot have more layers than tensors
    }
    if (layers == 0) block_missing("layer_count", "neither this attribute nor a tensor \"layers.0. ...\" is there");
    return layers;
  }

  // M8. Without the attribute, the rows of wk give kv_head_count if they are fewer than hidden_size.
  void derive_kv() {
    const auto wk = find_role(model_, Role::wk, 0);
    std::uint64_t rows = h_.hidden_size;
    if (wk && wk->has_shape() && wk->shape().size() == 2) rows = wk->shape()[0];
    const auto attribute = u32("kv_head_count");
    const bool grouped = rows < h_.hidden_size && rows > 0 && h_.head_dim > 0 && rows % h_.head_dim == 0;
    h_.kv_head_count = attribute ? *attribute
                       : grouped ? static_cast<std::uint32_t>(rows / h_.head_dim)
                                 : h_.head_count;
    if (!grouped || rows != std::uint64_t{h_.kv_head_count} * h_.head_dim) return;
    kv_rows_ = rows;
    if (options_.slm.keep_gqa) {
      out_.changes.push_back(
          {LossKind::shape, "wk and wv", std::to_string(rows) + " rows",
           std::to_string(h_.hidden_size) + " rows, those added all zero; the original runtime refuses such a file"});
      return;
    }
    out_.changes.push_back({LossKind::attribute, indexed("attributes", key("kv_head_count")),
                            std::to_string(h_.kv_head_count),
                            std::to_string(h_.head_count) + ": each key and value head is repeated over its group"});
    repeated_from_ = h_.kv_head_count;
  }

  // Checks the header by the reader's own rules.
  void check() {
    Header whole = h_;
    whole.checksum = 1;
    Report report;
    core::Findings findings(report, core::Findings::Mode::all);
    check_fields(whole, findings);
    const auto tokenizer = model_.tokenizer();
    if (tokenizer && tokenizer->kind == Tokenizer::Kind::byte) check_special_tokens(whole, findings);
    for (const Finding& finding : report.findings())
      out_.blockers.push_back({LossKind::attribute, "the header", finding.found, finding.message});
    if (repeated_from_ != 0) h_.kv_head_count = h_.head_count;
  }

  const Model& model_;
  const Options& options_;
  core::WriteLayout& out_;
  const std::size_t before_;
  std::vector<std::string> used_;  // attributes that the header holds
  Header h_ = kNewHeader;
  std::uint64_t kv_rows_ = 0;
  std::uint32_t repeated_from_ = 0;
};

// Hyperparameters under the keys of Hugging Face's configurations: their tables, and the plan's items for each.

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

Hyper derive_hyper(const Model& model, const Options& options, core::WriteLayout& out) {
  return Deriver(model, options, out).run();
}

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

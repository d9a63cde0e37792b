// SPDX-License-Identifier: Apache-2.0
// A folder of transformers under llama.cpp's names and keys, by its row in the table of architectures. A view: values
// are rearranged while they are read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "convert/architectures.h"
#include "convert/llama_cpp.h"
#include "convert/naming.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "core/reading/encoder_settings.h"
#include "formats/huggingface/setting_judge.h"
#include "tokenizers/tokenizer_rules.h"
#include "weighbridge/scheme.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

using core::subject;
using Words = std::vector<std::string_view>;

[[noreturn]] void unfit(const std::string& why, Hint hint = {}) {
  base::misuse("naming", "names of llama.cpp do not fit this model: " + why, std::move(hint));
}

// Settings of config.json that change nothing about what a model computes, or that other settings repeat; those of
// huggingface::setting_rows() are more.
constexpr std::string_view kHarmless =
    "architectures attention_dropout attn_pdrop aux_loss_alpha auto_map classifier_activation classifier_bias "
    "decoder_bias "
    "dense_act_fn deterministic_flash_attn dropout dropout_rate embd_pdrop embedding_dropout ep_size "
    "experts_per_token hidden_dropout initial_context_length initializer_cutoff_factor initializer_factor "
    "is_encoder_decoder is_gated_act max_window_layers mlp_dropout model_max_length model_type num_ln_in_parallel_attn "
    "num_nextn_predict_layers "
    "output_router_logits pretraining_tp qk_head_dim quantization_config reorder_and_upcast_attn resid_pdrop "
    "residual_dropout router_aux_loss_coef router_jitter_noise scale_decoder_outputs seq_aux sparse_pred_ignore_index "
    "sparse_prediction summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj "
    "text_config unsloth_fixed unsloth_version use_qkv_bias vision_config vocab_size";

// The text of a member of a JSON object, without the quotes of a string; nullopt for null.
std::optional<std::string> member(std::string_view json, std::string_view name) {
  const auto raw = raw_member(json, name);
  if (!raw) return std::nullopt;
  return std::string(raw->size() >= 2 && raw->front() == '"' ? raw->substr(1, raw->size() - 2) : *raw);
}
std::optional<double> number(const std::optional<std::string>& text) {
  return text ? wire::as_double(*text) : std::nullopt;
}

// The settings of a config.json; those of a `text_config` come first.
class Settings {
 public:
  Settings(const Model& model, std::string_view defaults) : model_(model) {
    if (const Value* const inner = model.attribute("hf.text_config")) inner_ = inner->to_text();
    for (const std::string_view word : split(defaults, ' ')) {
      const std::size_t equals = word.find('=');
      if (equals != word.npos) defaults_.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
  }

  // As text, without what the table says of absent ones.
  std::optional<std::string> stated(std::string_view key) {
    used_.emplace("hf." + std::string(key));
    if (auto text = inner_.empty() ? std::nullopt : member(inner_, key)) return text;
    const Value* const value = model_.attribute("hf." + std::string(key));
    if (value == nullptr) return std::nullopt;
    std::string text = value->to_text();
    return text == "null" ? std::nullopt : std::optional(std::move(text));
  }
  std::optional<std::string> text(std::string_view keys) {
    std::optional<std::string> out;
    for (const std::string_view key : split(keys, ' '))
      if (auto found = stated(key); found && !out) out = std::move(found);
    if (out) return out;
    for (const std::string_view key : split(keys, ' '))
      if (const auto at = defaults_.find(key); at != defaults_.end()) return std::string(at->second);
    return std::nullopt;
  }
  std::optional<double> real(std::string_view keys) {
    const auto found = text(keys);
    const auto out = number(found);
    if (found && (!out || !std::isfinite(*out)))
      unfit(fmt::format("{} is {}", core::quoted(split(keys, ' ')[0]), core::quoted(core::excerpt(*found))));
    return out;
  }
  std::optional<std::uint64_t> count(std::string_view keys) {
    const auto out = real(keys);
    if (out && (*out < 0 || *out > INT32_MAX || *out != std::floor(*out)))
      unfit(fmt::format("{} is {}", core::quoted(split(keys, ' ')[0]), *out));
    return out ? std::optional(static_cast<std::uint64_t>(*out)) : std::nullopt;
  }
  std::uint64_t required(std::string_view keys) {
    const auto out = count(keys);
    if (!out || *out == 0) unfit(fmt::format("config.json has no {}", core::quoted(split(keys, ' ')[0])));
    return *out;
  }
  const std::set<std::string, std::less<>>& used() const { return used_; }

 private:
  const Model& model_;
  std::string inner_;
  std::map<std::string_view, std::string_view> defaults_;
  std::set<std::string, std::less<>> used_;
};

Sizes read_sizes(Settings& settings, const Architecture& row) {
  Sizes out;
  out.layers = settings.required(settings_of("block_count"));
  out.decoder_layers = settings.count("num_decoder_layers").value_or(out.layers);
  out.hidden = settings.required(settings_of("embedding_length"));
  out.heads = settings.required(settings_of("attention.head_count"));
  out.kv_heads = settings.count(settings_of("attention.head_count_kv")).value_or(out.heads);
  if (row.name == "falcon") {
    const bool grouped = settings.text("new_decoder_architecture") == "true";
    const bool one = settings.text("multi_query").value_or("true") == "true";
    const auto stated = settings.count("num_kv_heads n_head_kv");
    out.kv_heads = grouped ? stated.value_or(out.heads) : one ? 1 : out.heads;
  }
  out.head = settings.count(settings_of("attention.key_length")).value_or(out.hidden / out.heads);
  if (out.head == 0 || out.kv_heads == 0) unfit("a number of heads in config.json is 0");
  if ((row.flags & kExperts) != 0) out.experts = settings.required(settings_of("expert_count"));
  out.untied = settings.stated("tie_word_embeddings") == "false" && (row.flags & kDropsOutput) == 0;
  return out;
}

class Maker {
 public:
  Maker(const Model& model, const Architecture& row, const GgufOptions& asked)
      : model_(model), row_(row), asked_(asked), settings_(model, row.defaults) {
    draft_.begin_view(model);
  }

  core::Derived run() {
    const Sizes sizes = read_sizes(settings_, row_);
    layers_ = sizes.layers;
    decoder_layers_ = sizes.decoder_layers;
    hidden_ = sizes.hidden;
    heads_ = sizes.heads;
    kv_heads_ = sizes.kv_heads;
    head_ = sizes.head;
    experts_ = sizes.experts;
    own_output_ = sizes.untied && !is(kEncoder);
    check_settings();
    set_keys();
    for (const Tensor& tensor : model_) take(tensor);
    finish_experts();
    if (!factors_.empty()) add_values(draft_, kRopeFactors, factors_);
    set_vocabulary();
    check_unknown();
    keep_others();
    if (!draft_.index_names().empty()) unfit("two tensors would have the same name");
    check_layers();
    set_file_keys(draft_, words().dtype());
    if (!draft_.find("token_embd.weight")) unfit("no tensor becomes \"token_embd.weight\"");
    out_.model = draft_.finish();
    return std::move(out_);
  }

 private:
  bool is(unsigned flag) const { return (row_.flags & flag) != 0; }
  std::string key(std::string_view name) const { return std::string(row_.name) + "." + std::string(name); }
  void set(std::string name, Value value) { draft_.set_attribute(std::move(name), std::move(value)); }
  void set_count(std::string_view name, std::uint64_t value) { set(key(name), Value::integer(value, DType::u32)); }
  void set_real(std::string_view name, double value) {
    set(key(name), Value::real(static_cast<double>(static_cast<float>(value)), DType::f32));
  }
  void set_text(std::string_view name, std::string text) { set(key(name), Value::text(std::move(text))); }

  // ---- settings ----

  void check_settings() {
    for (const std::string_view word : split(row_.accepts, ' ')) {
      const std::size_t equals = word.find('=');
      const std::string_view name = word.substr(0, equals);
      const Words values = split(word.substr(equals + 1), '|');
      const std::string found = settings_.text(name).value_or(values[0] == "null" ? "null" : std::string(values[0]));
      if (std::ranges::find(values, found) == values.end() &&
          !(values[0] == "null" && (found == "0" || found == "false")) && !ignores(name, found))
        unfit(fmt::format("{} is {}, and llama.cpp computes {} only", core::quoted(name),
                          core::quoted(core::excerpt(found)), core::quoted(values[0])),
              base::option_hint("ignore-setting", std::string(name)));
    }
    if (is(kPermutes) && head_ % 2 != 0) unfit("the size of a head is odd");
    attention_bias_ = settings_.text("attention_bias") == "true";
    mlp_bias_ = settings_.text("mlp_bias") == "true";
    const bool scalar = row_.name == "gemma2" || row_.name == "gemma3";
    if (scalar) {
      const std::uint64_t large = row_.name == "gemma2" ? 46 : 62;
      const double asked = settings_.real("query_pre_attn_scalar").value_or(256);
      const double runs = static_cast<double>(layers_ == large ? hidden_ / heads_ : head_);
      if (asked != runs) unfit(fmt::format("\"query_pre_attn_scalar\" is {}, and llama.cpp computes {}", asked, runs));
    }
    if (row_.name == "smollm3") check_pattern("no_rope_layers", 4, "0", "1");
    if (row_.name == "gemma2") check_pattern("layer_types", 2, "\"full_attention\"", "\"sliding_attention\"");
    if (row_.name == "gpt-oss") check_pattern("layer_types", 2, "\"full_attention\"", "\"sliding_attention\"");
    if (row_.name == "cohere2") check_pattern("layer_types", 4, "\"full_attention\"", "\"sliding_attention\"");
    if (row_.name == "gemma3") check_pattern("layer_types", 6, "\"full_attention\"", "\"sliding_attention\"");
    if (row_.name == "granite" && head_ != hidden_ / heads_) unfit("\"head_dim\" is not the hidden size by the heads");
    if (row_.name == "olmoe" && kv_heads_ != heads_)
      unfit("it has fewer heads of keys than of queries, which llama.cpp does not open");
    if (row_.name == "phi2" && settings_.required("intermediate_size") != 4 * hidden_)
      out_.changes.push_back({LossKind::attribute, core::indexed("attributes", key("feed_forward_length")),
                              "4 times the hidden size", "the size in config.json"});
    if (is(kDeepSeek)) {
      const auto rotation = rotation_json();
      if (rotation && member(*rotation, "mscale") != member(*rotation, "mscale_all_dim"))
        unfit("\"mscale\" and \"mscale_all_dim\" differ");
      if (settings_.count("moe_layer_freq").value_or(1) != 1) unfit("\"moe_layer_freq\" is not 1");
    }
    settings_.stated("layer_types");  // of rows without a pattern, by the window
    for (const std::string_view about : {"sliding_window"})
      if (const auto window = settings_.stated(about); window && *window != "0" &&
                                                       row_.keys.find(about) == row_.keys.npos &&
                                                       settings_.text("use_sliding_window").value_or("true") != "false")
        out_.losses.push_back({LossKind::attribute, core::indexed("attributes", "hf." + std::string(about)), *window,
                               "every layer attends to all tokens: llama.cpp has no key for it"});
  }

  // Whether the user passes the setting.
  bool ignores(std::string_view name, std::string_view value) {
    if (std::ranges::find(asked_.ignore_settings, name) == asked_.ignore_settings.end()) return false;
    out_.changes.push_back({LossKind::attribute, core::indexed("attributes", "hf." + std::string(name)),
                            core::excerpt(value), "ignored, as asked: llama.cpp computes without it"});
    return true;
  }

  // Settings that nothing has read may change the result, unless they are harmless or off.
  void check_unknown() {
    for (const auto& [attribute, value] : model_.attributes()) {
      if (!attribute.starts_with("hf.") || settings_.used().contains(attribute)) continue;
      const std::string key = attribute.substr(3), text = value.to_text();
      const auto* const row = huggingface::find_setting("config.json", key);
      constexpr std::string_view kOff[] = {"", "null", "false", "0", "0.0", "[]", "{}"};
      if (core::has_word(kHarmless, key) || key.ends_with("_token_id") ||
          (row != nullptr && row->verdict == huggingface::SettingRow::Verdict::harmless) ||
          std::ranges::find(kOff, text) != std::end(kOff) || ignores(key, text))
        continue;
      out_.blockers.push_back({LossKind::attribute, core::indexed("attributes", attribute), core::excerpt(text),
                               "it may change the result, and llama.cpp has no key for it"});
    }
  }

  // Every n-th layer has one value, the others another.
  void check_pattern(std::string_view name, std::uint64_t n, std::string_view each, std::string_view others,
                     std::uint64_t first = 1) {
    const auto text = settings_.stated(name);
    if (!text) return;
    wire::JsonReader in(*text);
    if (!in.enter_array()) unfit(fmt::format("{} is no list", core::quoted(name)));
    for (std::uint64_t i = first; in.next_element(); ++i) {
      std::string_view raw;
      if (!in.skip_value(raw) || raw != (i % n == 0 ? each : others))
        unfit(fmt::format("{} has another pattern than each {}th", core::quoted(name), n));
    }
  }

  // ---- metadata ----

  void set_keys() {
    set("general.architecture", Value::text(std::string(row_.name)));
    set("general.type", Value::text("model"));
    describe(model_, draft_, out_);
    set_count("block_count", layers_);
    set_count("context_length", context());
    set_count("embedding_length", hidden_);
    set_count("feed_forward_length", settings_.count(settings_of("feed_forward_length")).value_or(4 * hidden_));
    set_count("attention.head_count", heads_);
    if (!is(kNoKeyValueHeads)) set_count("attention.head_count_kv", is(kDeepSeek) ? 1 : kv_heads_);
    if (const auto eps = settings_.real(settings_of("attention.layer_norm_rms_epsilon")))
      set_real("attention.layer_norm_rms_epsilon", *eps);
    if (const auto eps = settings_.real(settings_of("attention.layer_norm_epsilon")))
      set_real("attention.layer_norm_epsilon", *eps);
    if (is(kExperts)) {
      set_count("expert_count", experts_);
      set_count("expert_used_count", settings_.required(settings_of("expert_used_count")));
    }
    const bool states_head =
        !is(kNoHeadSize) && !is(kDeepSeek) && settings_.text(settings_of("attention.key_length")).has_value();
    if (states_head) {
      set_count("attention.key_length", head_);
      set_count("attention.value_length", head_);
    }
    if (is(kStatesVocabulary)) set_count("vocab_size", settings_.required("vocab_size"));
    for (const std::string_view word : split(row_.keys, ' ')) set_own(word);
    if (is(kDeepSeek)) set_deep_seek();
    if (is(kEncoder)) set_encoder();
    if (row_.name == "t5") set_count("decoder_block_count", decoder_layers_);
    if (!is(kNoRotation)) rotation();
    if (row_.name == "falcon") set_text("tensor_data_layout", "jploski");
    if (row_.name == "command-r" || row_.name == "cohere2" || row_.name == "modern-bert")
      set_text("rope.scaling.type", "none");
    if (row_.name == "phi2") set("tokenizer.ggml.add_bos_token", Value::boolean(false));
  }

  void set_own(std::string_view word) {
    const std::size_t equals = word.find('='), colon = word.find(':');
    const std::string_view to = word.substr(0, equals), from = word.substr(equals + 1, colon - equals - 1);
    const bool optional = word.ends_with('?');
    const auto text = settings_.text(from);
    if (!text) {
      if (!optional) unfit(fmt::format("config.json has no {}", core::quoted(from)));
      return;
    }
    switch (word[colon + 1]) {
      case 'u':
        if (const auto value = settings_.count(from); !optional || *value != 0) set_count(to, *value);
        break;
      case 'f':
        if (const auto value = settings_.real(from); !optional || *value != 0) set_real(to, *value);
        break;
      case 's': set_text(to, *text); break;
      default: set(key(to), Value::boolean(*text == "true"));
    }
  }

  // Tokens that the model was made for. Rows of padding are no positions.
  std::uint64_t context() {
    if (row_.name == "nomic-bert-moe") return 512;  // that it was trained for, whatever it can hold
    if (row_.name == "nomic-bert") return settings_.required("max_trained_positions");
    const std::uint64_t all = settings_.required(settings_of("context_length"));
    if (row_.names.data() == nullptr || !has_positions()) return all;
    padding_ = settings_.count("pad_token_id").value_or(0) + 1;
    if (padding_ >= all) unfit("\"pad_token_id\" leaves no positions");
    return all - padding_;
  }
  bool has_positions() const {
    return std::ranges::find(row_.names, Arrange::positions, &TensorRow::change) != row_.names.end();
  }

  void set_encoder() {
    set(key("attention.causal"), Value::boolean(false));
    set("tokenizer.ggml.token_type_count", Value::integer(settings_.count("type_vocab_size").value_or(1), DType::u32));
    if (model_.attribute(core::kSentenceModules))
      unfit("it has modules of sentence-transformers besides the encoder, one pooling and Normalize");
    constexpr std::string_view kPoolings[] = {"none", "mean", "cls", "lasttoken"};
    for (const auto& [to, from] : {std::pair("classifier.pooling_type", settings_.stated("classifier_pooling")),
                                   std::pair("pooling_type", own("pooling_mode"))}) {
      if (!from) continue;
      const auto found = std::ranges::find(kPoolings, *from);
      if (found == std::end(kPoolings))
        unfit("its tokens become one embedding by " + core::quoted(core::excerpt(*from)));
      set_count(to, static_cast<std::uint64_t>(found - std::begin(kPoolings)));
    }
    if (row_.name == "modern-bert")
      check_pattern("layer_types", settings_.required("global_attn_every_n_layers"), "\"full_attention\"",
                    "\"sliding_attention\"", 0);
  }
  // What the reader of folders says beside config.json.
  std::optional<std::string> own(std::string_view name) const {
    const Value* const value = model_.attribute(name);
    return value ? std::optional(value->to_text()) : std::nullopt;
  }

  void set_deep_seek() {
    const std::uint64_t rank = settings_.required("kv_lora_rank"), rotated = settings_.required("qk_rope_head_dim");
    plain_ = settings_.required("qk_nope_head_dim");
    value_ = settings_.required("v_head_dim");
    if (const auto query = settings_.count("q_lora_rank"); query && *query != 0)
      set_count("attention.q_lora_rank", *query);
    set_count("attention.kv_lora_rank", rank);
    set_count("attention.key_length", rank + rotated);
    set_count("attention.value_length", rank);
    set_count("attention.key_length_mla", plain_ + rotated);
    set_count("attention.value_length_mla", value_);
    set_count("rope.dimension_count", rotated);
    const std::string gating = settings_.text("scoring_func").value_or("softmax");
    if (gating == "sigmoid") set_count("expert_gating_func", 2);
  }

  // rope_parameters of transformers 5, or rope_scaling; for layers with full attention.
  std::optional<std::string> rotation_json() {
    std::optional<std::string> out;
    for (const std::string_view name : {"rope_parameters", "rope_scaling"}) {
      auto found = settings_.stated(name);
      if (!found || *found == "{}") continue;
      if (auto full = member(*found, "full_attention")) found = full;
      if (!found->starts_with('{')) unfit("the rotation is scaled by " + core::quoted(core::excerpt(*found)));
      if (out && *out != *found &&
          stated_rotation(model_, settings_.real("rope_theta").value_or(10000))->kind == RopeScaling::Kind::other)
        unfit("\"rope_parameters\" and \"rope_scaling\" differ");
      out = std::move(found);
    }
    return out;
  }

  void rotation() {
    const auto json = rotation_json();
    const auto in = [&](std::string_view name) { return json ? member(*json, name) : std::nullopt; };
    double theta = settings_.real(settings_of("rope.freq_base")).value_or(10000);
    if (const auto inner = number(in("rope_theta"))) theta = *inner;  // of transformers 5
    if (!(theta > 0)) unfit("\"rope_theta\" is not above 0");
    if (!is(kNoRopeBase))
      set_real("rope.freq_base", theta);
    else if (row_.accepts.find("rope_theta") != row_.accepts.npos && theta != 10000)
      unfit(fmt::format("\"rope_theta\" is {}, and llama.cpp computes 10000 only", theta));
    if (is(kTwoRotations)) {
      const auto all = settings_.stated("rope_parameters");
      const auto sliding = all ? member(*all, "sliding_attention") : std::nullopt;
      set_real("rope.freq_base_swa", sliding ? number(member(*sliding, "rope_theta")).value_or(10000)
                                             : settings_.real(settings_of("rope.freq_base_swa")).value_or(10000));
    }
    const double part =
        number(in("partial_rotary_factor")).value_or(settings_.real("partial_rotary_factor rotary_pct").value_or(1));
    const auto rotated = static_cast<std::uint64_t>(
        row_.name == "phi2" ? std::floor(part * static_cast<double>(hidden_)) / static_cast<double>(heads_)
                            : std::floor(part * static_cast<double>(head_)));
    if (is(kStatesRotated)) set_count("rope.dimension_count", rotated);
    const std::string type = in("rope_type").value_or(in("type").value_or("default"));
    const auto factor = number(in("factor"));
    if (is(kPhi3)) return phi3_rotation(json, type, rotated);
    if (type == "default") return;
    if (!factor || !(*factor >= 1)) unfit("the rotation is scaled without a factor of at least 1");
    if (type == "linear") {
      set_text("rope.scaling.type", type);
      set_real("rope.scaling.factor", *factor);
    } else if (type == "yarn") {
      set_text("rope.scaling.type", type);
      set_real("rope.scaling.factor", *factor);
      set_count("rope.scaling.original_context_length", whole(in("original_max_position_embeddings")));
      if (in("truncate").value_or("true") == "true" && row_.name == "gpt-oss")
        unfit("\"truncate\" of the rotation is true");
      for (const auto& [to, from] : {std::pair("rope.scaling.yarn_attn_factor", "attention_factor"),
                                     std::pair("rope.scaling.yarn_beta_fast", "beta_fast"),
                                     std::pair("rope.scaling.yarn_beta_slow", "beta_slow")})
        if (const auto value = number(in(from))) set_real(to, *value);
      if (const auto all = number(in("mscale_all_dim")); all && is(kDeepSeek))
        set_real("rope.scaling.yarn_log_multiplier", 0.1 * *all);
    } else if (type == "llama3") {
      const RopeScaling scaling = parse_rope_scaling(*json);
      if (scaling.kind != RopeScaling::Kind::llama3) unfit("the scaling of the rotation is not complete");
      factors_ = rope_factors(scaling, theta, head_);
    } else {
      unfit(fmt::format("the rotation is scaled by {}", core::quoted(core::excerpt(type))));
    }
  }
  static std::uint64_t whole(const std::optional<std::string>& text) {
    const auto value = text ? wire::as_u64(*text) : std::nullopt;
    if (!value || *value == 0 || *value > INT32_MAX) unfit("the scaling of the rotation is not complete");
    return *value;
  }

  void phi3_rotation(const std::optional<std::string>& json, const std::string& type, std::uint64_t rotated) {
    const std::uint64_t context = settings_.required("max_position_embeddings");
    const std::uint64_t original = settings_.required("original_max_position_embeddings");
    set_count("rope.scaling.original_context_length", original);
    const auto window = settings_.count("sliding_window");
    set_count("attention.sliding_window", window.value_or(0));
    if (type == "default") return;
    if (type != "longrope" && type != "su") unfit(fmt::format("the rotation is scaled by {}", core::quoted(type)));
    const double scale = static_cast<double>(context) / static_cast<double>(original);
    set_real("rope.scaling.attn_factor",
             scale <= 1 ? 1 : std::sqrt(1 + std::log(scale) / std::log(static_cast<double>(original))));
    for (const std::string_view which : {"long", "short"}) {
      const auto list = member(*json, std::string(which) + "_factor");
      std::vector<float> values;
      wire::JsonReader in(list ? std::string_view(*list) : std::string_view("0"));
      wire::JsonNumber each;
      if (in.enter_array())
        while (in.next_element() && in.read_number(each))
          values.push_back(static_cast<float>(wire::as_double(each.raw).value_or(0)));
      if (values.size() != rotated / 2)
        unfit(fmt::format("the rotation has {} factors for half of {} elements", values.size(), rotated));
      add_values(draft_, "rope_factors_" + std::string(which) + ".weight", values);
    }
  }

  // ---- tensors ----

  void take(const Tensor& tensor) {
    const std::string name = plain_name(tensor.name());
    for (const std::string_view part : {"vision", "visual", "audio", "multi_modal_projector", "image_newline"})
      if (name.find(part) != name.npos)
        return void(out_.losses.push_back({LossKind::part, subject(tensor), std::string(tensor.type_name()),
                                           "left out: it is no part of the language model"}));
    if (const auto found = find_row(row_, name)) return put(tensor, *found);
    out_.blockers.push_back({LossKind::unsupported, subject(tensor), std::string(tensor.type_name()),
                             "llama.cpp has no name for it in this architecture"});
  }

  void put(const Tensor& tensor, const Named& named) {
    const TensorRow& row = *named.row;
    if (row.change == Arrange::left_out) {
      out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.type_name()),
                              "left out: " + std::string(row.also.empty() ? "llama.cpp computes it" : row.also)});
      return;
    }
    const std::uint64_t layers = row.from.starts_with("decoder.") ? decoder_layers_ : layers_;
    const bool beyond = row.from.find(".N.") != row.from.npos && named.layer >= layers;
    if (beyond || row.change == Arrange::other_part) {
      out_.losses.push_back(
          {LossKind::part, subject(tensor), std::string(tensor.type_name()),
           beyond ? fmt::format("left out: the model has {} layers", layers) : "left out: llama.cpp has no such head"});
      return;
    }
    const std::string to = spelled(row.to, named.layer, 0,
                                   row.to.ends_with(".weight") || row.to.ends_with(".bias") ? ""
                                   : named.tail.empty()                                     ? ".weight"
                                                                                            : named.tail);
    if (is(kStatesBiases) && to.ends_with(".bias") && !(to.find(".attn_") != to.npos ? attention_bias_ : mlp_bias_)) {
      out_.losses.push_back({LossKind::unsupported, subject(tensor), std::string(tensor.type_name()),
                             "left out: config.json says that there are no such biases"});
      return;
    }
    if (named.tail != ".bias") ++seen_[&row];
    if (to == "output.weight" && is(kDropsOutput)) {
      out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.type_name()),
                              "left out: the embeddings are the output"});
      return;
    }
    if (!tensor.has_shape() || tensor.unsupported()) {
      out_.blockers.push_back(
          {LossKind::unsupported, subject(tensor), std::string(tensor.type_name()), "its values are unknown"});
      return;
    }
    if (row.change == Arrange::experts) return collect(tensor, to, named.expert);
    const std::vector<std::uint64_t> shape(tensor.shape().begin(), tensor.shape().end());
    switch (row.change) {
      case Arrange::query_heads:
      case Arrange::key_heads:
        if (!is(kPermutes)) return rename(tensor, to);
        return pair_rows(tensor, to, shape);
      case Arrange::transpose: return turned(tensor, to, shape);
      case Arrange::positions: return positions(tensor, to, shape);
      case Arrange::halves: return halves(tensor, to, spelled(row.also, named.layer, 0, ".weight"), shape);
      case Arrange::even_odd: return even_odd(tensor, to, spelled(row.also, named.layer, 0, ""), shape);
      case Arrange::even_odd_bias: return even_odd_bias(tensor, to, spelled(row.also, named.layer, 0, ""), shape);
      case Arrange::grouped_qkv: return grouped_qkv(tensor, to, shape);
      case Arrange::stacked:
      case Arrange::stacked_turned: return stacked(tensor, to, shape, row.change == Arrange::stacked_turned);
      case Arrange::columns: return columns_of_experts(tensor, to, shape);
      case Arrange::key_value: return key_value(tensor, to, spelled(row.also, named.layer, 0, ".weight"), shape);
      default: break;
    }
    if (is(kNormsPlusOne) && to.ends_with("_norm.weight")) return plus_one(tensor, to);
    rename(tensor, to);
  }

  // llama.cpp opens no file that lacks a tensor of a layer.
  void check_layers() {
    for (const auto& [row, count] : seen_) {
      const std::uint64_t layers = row->from.starts_with("decoder.") ? decoder_layers_ : layers_;
      const bool of_some = row->to.ends_with("attn_rel_b") || is(kDeepSeek) || row->change == Arrange::experts ||
                           (row_.name == "nomic-bert-moe" && row->to.find(".ffn_") != row->to.npos) ||
                           (row_.name == "falcon" && row->to.find(".attn_norm") != row->to.npos) ||
                           (row_.name == "modern-bert" && row->to.ends_with(".attn_norm"));
      if (!of_some && row->from.find(".N.") != row->from.npos && count < layers)
        unfit(fmt::format("{} of {} layers have {}", count, layers, core::quoted(row->to)));
    }
    for (const auto& [stated, name] :
         {std::pair(attention_bias_, "blk.0.attn_q.bias"), std::pair(mlp_bias_, "blk.0.ffn_up.bias")})
      if (is(kStatesBiases) && stated && !draft_.find(name))
        unfit(fmt::format("config.json says that there are biases, and no tensor becomes {}", core::quoted(name)));
    if (own_output_ && !draft_.find("output.weight"))
      unfit("\"tie_word_embeddings\" is false, and no tensor becomes \"output.weight\"");
  }

  void rename(const Tensor& tensor, const std::string& to) {
    draft_.adopt(to, tensor);
    out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.name()), to});
  }

  void require(const Tensor& tensor, const std::vector<std::uint64_t>& shape, bool good) {
    if (!good || info(tensor.dtype()).bits % 8 != 0 || tensor.layout() != Layout::dense)
      unfit(fmt::format("tensor {} has the shape {}", core::quoted(tensor.name()), core::shape_text(shape)));
  }
  core::ElementsPtr own(const Tensor& tensor) { return core::elements_of(tensor, tensor.dtype()); }
  void add(const Tensor& from, const std::string& name, std::vector<std::uint64_t> shape, core::ElementsPtr values) {
    add_dense(draft_, name, std::move(shape), std::move(values), from);
  }
  void changed(const Tensor& tensor, std::string to) {
    out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.name()), std::move(to)});
  }

  void pair_rows(const Tensor& tensor, const std::string& to, const std::vector<std::uint64_t>& shape) {
    if (tensor.block_type() != nullptr && has_rows_to_pair(tensor, head_)) {
      add_paired_rows(draft_, to, tensor, head_);
      return changed(tensor, to + ", with the rows of each head in the order of llama.cpp");
    }
    require(tensor, shape, (shape.size() == 1 || shape.size() == 2) && shape[0] % head_ == 0);
    const std::uint64_t columns = shape.size() == 2 ? shape[1] : 1;
    add(tensor, to, shape, arranged({own(tensor)}, shape[0], columns, [=, head = head_](std::uint64_t row) {
          return Line{.first = paired_row(row, head) * columns};
        }));
    changed(tensor, to + ", with the rows of each head in the order of llama.cpp");
  }
  void turned(const Tensor& tensor, const std::string& to, std::vector<std::uint64_t> shape) {
    if (shape.size() == 1) return rename(tensor, to);
    require(tensor, shape, shape.size() == 2);
    std::swap(shape[0], shape[1]);
    add(tensor, to, shape, arranged({own(tensor)}, shape[0], shape[1], [step = shape[0]](std::uint64_t row) {
          return Line{.first = row, .step = step};
        }));
    changed(tensor, to + ", transposed");
  }
  void positions(const Tensor& tensor, const std::string& to, std::vector<std::uint64_t> shape) {
    require(tensor, shape, shape.size() == 2 && shape[0] > padding_);
    shape[0] -= padding_;
    add(tensor, to, shape,
        arranged({own(tensor)}, shape[0], shape[1], [columns = shape[1], skip = padding_](std::uint64_t row) {
          return Line{.first = (row + skip) * columns};
        }));
    changed(tensor, fmt::format("{}, without its first {} rows", to, padding_));
  }
  void halves(const Tensor& tensor, const std::string& to, const std::string& also, std::vector<std::uint64_t> shape) {
    require(tensor, shape, shape.size() == 3 && shape[1] % 2 == 0);
    shape[1] /= 2;
    for (std::uint64_t which = 0; which < 2; ++which)
      add(tensor, which == 0 ? to : also, shape,
          arranged({own(tensor)}, shape[0] * shape[1], shape[2],
                   [rows = shape[1], columns = shape[2], which](std::uint64_t row) {
                     return Line{.first = (row / rows * 2 * rows + which * rows + row % rows) * columns};
                   }));
    changed(tensor, to + " and " + also);
  }
  // Of each group of heads: its queries, one key, one value.
  void grouped_qkv(const Tensor& tensor, const std::string& to, const std::vector<std::uint64_t>& shape) {
    const std::uint64_t heads = heads_, groups = kv_heads_, each = heads / groups, head = hidden_ / heads;
    require(tensor, shape,
            (shape.size() == 1 || shape.size() == 2) && heads % groups == 0 && shape[0] == (heads + 2 * groups) * head);
    const std::uint64_t columns = shape.size() == 2 ? shape[1] : 1;
    add(tensor, to, shape, arranged({own(tensor)}, shape[0], columns, [=](std::uint64_t row) {
          const std::uint64_t h = row / head, more = h < heads ? 0 : 1 + (h - heads) / groups;
          const std::uint64_t group = more == 0 ? h / each : (h - heads) % groups;
          return Line{.first = ((group * (each + 2) + (more == 0 ? h % each : each + more - 1)) * head + row % head) *
                               columns};
        }));
    changed(tensor, to + ", with all queries first, then all keys, then all values");
  }
  void stacked(const Tensor& tensor, const std::string& to, const std::vector<std::uint64_t>& shape, bool turned) {
    require(tensor, shape, shape.size() == 2 && shape[0] % experts_ == 0);
    const std::uint64_t rows = shape[0] / experts_, columns = shape[1];
    if (turned)
      add(tensor, to, {experts_, columns, rows},
          arranged({own(tensor)}, experts_ * columns, rows, [=](std::uint64_t row) {
            return Line{.first = row / columns * rows * columns + row % columns, .step = columns};
          }));
    else
      add(tensor, to, {experts_, rows, columns}, own(tensor));
    changed(tensor, to + ", a matrix for each expert");
  }
  // [experts, columns, 2 rows], of which even ones and odd ones are rows of the two.
  void even_odd(const Tensor& tensor, const std::string& to, const std::string& also,
                const std::vector<std::uint64_t>& shape) {
    if (tensor.block_type() != nullptr) return even_odd_blocks(tensor, to, also, shape);
    require(tensor, shape, shape.size() == 3 && shape[2] % 2 == 0);
    const std::uint64_t columns = shape[1], rows = shape[2] / 2;
    for (std::uint64_t which = 0; which < 2; ++which)
      add(tensor, which == 0 ? to : also, {shape[0], rows, columns},
          arranged({own(tensor)}, shape[0] * rows, columns, [=](std::uint64_t row) {
            return Line{.first = row / rows * columns * 2 * rows + 2 * (row % rows) + which, .step = 2 * rows};
          }));
    changed(tensor, to + " and " + also);
  }
  // [experts, 2 rows, columns] in blocks of the columns.
  void even_odd_blocks(const Tensor& tensor, const std::string& to, const std::string& also,
                       const std::vector<std::uint64_t>& shape) {
    if (shape.size() != 3 || shape[1] % 2 != 0 || tensor.block_type()->block_bytes == 0)
      unfit(fmt::format("tensor {} has the shape {}", core::quoted(tensor.name()), core::shape_text(shape)));
    const Part from = tensor.main();
    const std::uint64_t rows = shape[0] * shape[1] / 2, bytes = from.size() / 2 / std::max<std::uint64_t>(rows, 1);
    for (std::uint64_t which = 0; which < 2; ++which) {
      const std::uint64_t half[] = {shape[0], shape[1] / 2, shape[2]}, size[] = {rows * bytes};
      const Attributes attributes = tensor.attributes();
      draft_.tensor(draft_.add_tensor(which == 0 ? to : also, tensor.layout(), tensor.dtype(), half))
          .block_type(tensor.block_type())
          .attributes({attributes.begin(), attributes.end()});
      draft_.part(draft_.add_part("data", DType::u8, size, Encoding::computed, {}, size[0]))
          .elements(arranged({core::elements_of(from)}, rows, bytes,
                             [=](std::uint64_t row) { return Line{.first = (2 * row + which) * bytes}; }));
    }
    changed(tensor, to + " and " + also);
  }
  void even_odd_bias(const Tensor& tensor, const std::string& to, const std::string& also,
                     const std::vector<std::uint64_t>& shape) {
    require(tensor, shape, shape.size() == 2 && shape[1] % 2 == 0);
    for (std::uint64_t which = 0; which < 2; ++which)
      add(tensor, which == 0 ? to : also, {shape[0], shape[1] / 2},
          arranged({own(tensor)}, shape[0], shape[1] / 2,
                   [all = shape[1], which](std::uint64_t row) { return Line{.first = row * all + which, .step = 2}; }));
    changed(tensor, to + " and " + also);
  }
  void columns_of_experts(const Tensor& tensor, const std::string& to, const std::vector<std::uint64_t>& shape) {
    if (tensor.block_type() != nullptr) return rename(tensor, to);  // its blocks are of rows already
    require(tensor, shape, shape.size() == 3);
    const std::uint64_t columns = shape[1], rows = shape[2];
    add(tensor, to, {shape[0], rows, columns},
        arranged({own(tensor)}, shape[0] * rows, columns, [=](std::uint64_t row) {
          return Line{.first = row / rows * rows * columns + row % rows, .step = rows};
        }));
    changed(tensor, to + ", transposed");
  }
  // [heads * (plain + value), rank]: keys [heads, rank, plain], values [heads, value, rank].
  void key_value(const Tensor& tensor, const std::string& to, const std::string& also,
                 const std::vector<std::uint64_t>& shape) {
    const std::uint64_t each = plain_ + value_, plain = plain_, value = value_;
    require(tensor, shape, shape.size() == 2 && shape[0] == heads_ * each);
    const std::uint64_t rank = shape[1];
    add(tensor, to, {heads_, rank, plain}, arranged({own(tensor)}, heads_ * rank, plain, [=](std::uint64_t row) {
          return Line{.first = row / rank * each * rank + row % rank, .step = rank};
        }));
    add(tensor, also, {heads_, value, rank}, arranged({own(tensor)}, heads_ * value, rank, [=](std::uint64_t row) {
          return Line{.first = (row / value * each + plain + row % value) * rank};
        }));
    changed(tensor, to + " and " + also);
  }
  void plus_one(const Tensor& tensor, const std::string& to) {
    add(tensor, to, {tensor.shape().begin(), tensor.shape().end()}, added_to(tensor, 1));
    changed(tensor, to + ", plus 1");
  }

  void collect(const Tensor& tensor, const std::string& to, std::uint64_t expert) {
    if (expert >= experts_)
      unfit(fmt::format("tensor {} is of an expert beyond the {}", core::quoted(tensor.name()), experts_));
    if (!stacks_[to].emplace(expert, tensor).second)
      unfit(fmt::format("two tensors would be matrix {} of {}", expert, to));
    changed(tensor, fmt::format("matrix {} of {}", expert, to));
  }
  void finish_experts() {
    for (auto& [to, all] : stacks_) {
      const Tensor& first = all.begin()->second;
      std::vector<core::ElementsPtr> inputs;
      for (const auto& [expert, tensor] : all) {
        if (expert != inputs.size()) break;
        const std::vector<std::uint64_t> shape(tensor.shape().begin(), tensor.shape().end());
        require(
            tensor, shape,
            shape.size() == 2 && tensor.dtype() == first.dtype() && std::ranges::equal(tensor.shape(), first.shape()));
        inputs.push_back(own(tensor));
      }
      if (inputs.size() != experts_) unfit(fmt::format("{} lacks its matrix {}", to, inputs.size()));
      const std::uint64_t rows = first.shape()[0], columns = first.shape()[1];
      add(first, to, {experts_, rows, columns},
          arranged(std::move(inputs), experts_ * rows, columns, [=](std::uint64_t row) {
            return Line{.input = static_cast<std::size_t>(row / rows), .first = row % rows * columns};
          }));
    }
  }

  // ---- the rest ----

  void set_vocabulary() {
    const std::uint64_t rows = words_rows();
    if (asked_.no_tokenizer) {
      if (!is(kStatesVocabulary)) set_count("vocab_size", rows);
      if (has_tokenizer(model_)) out_.losses.push_back(tokenizer_left_out());
      return set("tokenizer.ggml.model", Value::text("none"));
    }
    for (auto& [name, value] : chat_templates(model_)) set(std::move(name), std::move(value));
    auto tokenizer = model_.tokenizer();
    if (!tokenizer)
      if (auto pieces = vocabulary_of_pieces(model_, rows)) {
        for (auto& [name, value] : pieces->attributes) set(std::move(name), std::move(value));
        return;
      }
    std::string rules, unheld;
    if (!tokenizer)
      if (auto found = merges_of_folder(model_, rows)) {
        tokenizer = std::make_shared<const Tokenizer>(std::move(found->tokenizer));
        rules = std::move(found->rules);
        unheld = std::move(found->unheld);
      }
    if (!tokenizer) {
      const auto files = core::folder_files(model_);
      for (const core::FolderFile& file : files)
        if (file.name.starts_with("tokenizer.") || file.name.ends_with(".model"))
          out_.losses.push_back({LossKind::tokenizer, "tokenizer", core::quoted(file.name),
                                 "left out: it is of no kind that is known here"});
    }
    if (!tokenizer) {  // without tokens, llama.cpp asks for their number
      if (!is(kStatesVocabulary)) set_count("vocab_size", rows);
      return set("tokenizer.ggml.model", Value::text("none"));
    }
    if (tokenizer->vocab_size > rows) unfit("its tokenizer has more tokens than its word embeddings have rows");
    if (rows / 2 > std::max<std::uint64_t>(65536, tokenizer->tokens.size() + tokenizer->merges.size()))
      unfit("its word embeddings have more than twice as many rows as its tokenizer has tokens");
    Vocabulary made = vocabulary_for_llama_cpp(model_, *tokenizer, rows, rules, unheld);
    for (auto& [name, value] : made.attributes) set(std::move(name), std::move(value));
    for (std::string& difference : made.differences)
      out_.losses.push_back({LossKind::tokenizer, "tokenizer", "its own rules", std::move(difference)});
  }
  Tensor words() const {
    for (const Tensor& tensor : model_)
      if (const auto found = find_row(row_, plain_name(tensor.name()));
          found && found->row->to == "token_embd" && tensor.has_shape() && tensor.shape().size() == 2)
        return tensor;
    unfit("its word embeddings are not a matrix");
  }
  std::uint64_t words_rows() const {
    const Tensor matrix = words();
    return matrix.shape()[0];
  }
  void keep_others() {
    draft_.set_tokenizer(std::nullopt);
    for (const auto& [name, value] : model_.attributes())
      if (!settings_.used().contains(name) && !draft_.attribute(name) && name != "format" && name != "model_name" &&
          name != tokenizers::kTokenizerRules && name != tokenizers::kTokenizerUnheld)
        set(name, value);
  }

  const Model& model_;
  const Architecture& row_;
  const GgufOptions& asked_;
  Settings settings_;
  core::Draft draft_;
  core::Derived out_;
  std::uint64_t layers_ = 0, hidden_ = 0, heads_ = 0, kv_heads_ = 0, head_ = 0, experts_ = 0, plain_ = 0, value_ = 0,
                decoder_layers_ = 0, padding_ = 0;
  std::map<std::string, std::map<std::uint64_t, Tensor>> stacks_;  // of experts, by number
  bool own_output_ = false, attention_bias_ = false, mlp_bias_ = false;
  std::map<const TensorRow*, std::uint64_t> seen_;  // weights of each row
  std::vector<float> factors_;
};

// The class that a config.json names.
std::string class_of(const Model& model) {
  const Value* const value = model.attribute("hf.architectures");
  if (value == nullptr) return {};
  const std::string text = value->to_text();
  wire::JsonReader in(text);
  wire::JsonString first;
  return in.enter_array() && in.next_element() && in.read_string(first) ? std::string(first.raw) : std::string();
}

}  // namespace

Sizes sizes_of(const Model& model, const Architecture& row) {
  Settings settings(model, row.defaults);
  return read_sizes(settings, row);
}

// ---- what a file says about itself ----

void set_file_keys(core::Draft& draft, DType dtype) {
  std::uint64_t total = 0, shared = 0, one = 0, experts = 0, stacked = 0;
  for (std::uint32_t i = 0; i < draft.size(); ++i) {
    const Shape shape = draft.shape(i);
    const std::string_view name = draft.name(i);
    const std::uint64_t size = base::element_count(shape).value_or(0);
    total += size;
    if (name.find("_exps.") == name.npos || shape.size() < 3 || shape[0] == 0) {
      shared += size;
      continue;
    }
    one += size / shape[0];
    experts += shape[0];
    ++stacked;
  }
  const double count = static_cast<double>(stacked > 0 ? shared + one : total);
  constexpr std::pair<double, std::string_view> kUnits[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {0, "K"}};
  const auto& unit = *std::ranges::find_if(kUnits, [&](const auto& each) { return count > each.first; });
  const double scaled = count / (unit.first == 0 ? 1e3 : unit.first);
  const std::string label = fmt::format("{:.{}f}{}", scaled,
                                        std::nearbyint(scaled) >= 10  ? 0
                                        : std::nearbyint(scaled) >= 1 ? 1
                                                                      : 2,
                                        unit.second);
  if (total > 0 && !draft.attribute("general.size_label"))
    draft.set_attribute("general.size_label",
                        Value::text((stacked > 0 ? std::to_string(experts / stacked) + "x" : std::string()) + label));
  draft.set_attribute("general.file_type", Value::integer(std::uint64_t{dtype == DType::bf16  ? 32U
                                                                        : dtype == DType::f16 ? 1U
                                                                                              : 0U},
                                                          DType::u32));
  draft.set_attribute("general.quantization_version", Value::integer(std::uint64_t{2}, DType::u32));
}

const Architecture* architecture_of(const Model& model) {
  return find_architecture(class_of(model), [&](std::string_view when) {
    const Value* const value = model.attribute("hf." + std::string(when));
    return value != nullptr && value->to_text() != "null" && value->to_text() != "0";
  });
}

bool has_words(const Model& model) {
  constexpr std::string_view kNames[] = {"embed_tokens.weight",   "wte.weight",    "word_embeddings.weight",
                                         "tok_embeddings.weight", "shared.weight", "embed_in.weight"};
  for (const Tensor& tensor : model)
    if (std::ranges::any_of(kNames, [&](std::string_view name) { return tensor.name().ends_with(name); })) return true;
  return false;
}

bool has_known_names(const Model& model) { return architecture_of(model) != nullptr || class_of(model) == "BertModel"; }

void require_known_names(const Model& model) {
  const std::string name = class_of(model);
  if (name.empty() || name.starts_with("Bert") || name.starts_with("Llama")) return;
  const auto rows = architectures();
  const auto first_class = [&](std::uint32_t i) { return rows[i].classes.substr(0, rows[i].classes.find(' ')); };
  unfit("no names are known for the architecture " + core::quoted(core::excerpt(name)) +
        core::near_text(name, static_cast<std::uint32_t>(rows.size()), first_class));
}

core::Derived named_by_architecture(const Model& model, const GgufOptions& asked) {
  return Maker(model, *architecture_of(model), asked).run();
}

}  // namespace weighbridge::convert

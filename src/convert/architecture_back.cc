// SPDX-License-Identifier: Apache-2.0
// A GGUF with llama.cpp's names as a folder of transformers: the rows of the table of architectures, read backwards. A
// view: values are rearranged while they are read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "convert/architectures.h"
#include "convert/llama_cpp.h"
#include "convert/naming.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/payload/elements.h"
#include "formats/huggingface/layout.h"
#include "tokenizers/described.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

using core::subject;

constexpr std::string_view kArchitectureKey = "general.architecture";

// Rows of a family are of all its classes, and biases and norms of queries and keys are not: those that the classes of
// an architecture have, without "blk.N.". kStatesBiases says the others.
struct OwnTensors {
  std::string_view name, tensors;
};
constexpr std::string_view kQueryKeyNorms = "attn_q_norm.weight attn_k_norm.weight",
                           kInputBiases = "attn_q.bias attn_k.bias attn_v.bias";
constexpr OwnTensors kOwnTensors[] = {
    {"qwen2", kInputBiases},
    {"qwen2moe", kInputBiases},
    {"qwen3", kQueryKeyNorms},
    {"qwen3moe", kQueryKeyNorms},
    {"gemma3", kQueryKeyNorms},
    {"olmo2", kQueryKeyNorms},
    {"olmoe", kQueryKeyNorms},
    {"phi2",
     "attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_up.bias ffn_down.bias attn_norm.bias output_norm.bias "
     "output.bias"},
    {"stablelm", "attn_q.bias attn_k.bias attn_v.bias attn_norm.bias ffn_norm.bias output_norm.bias"},
    {"starcoder2",
     "attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_up.bias ffn_down.bias attn_norm.bias ffn_norm.bias "
     "output_norm.bias"},
    {"gpt2", "attn_qkv.bias attn_output.bias ffn_up.bias ffn_down.bias attn_norm.bias ffn_norm.bias output_norm.bias"},
    {"gptneox",
     "attn_qkv.bias attn_output.bias ffn_up.bias ffn_down.bias attn_norm.bias ffn_norm.bias output_norm.bias"},
    {"falcon", "attn_norm.bias attn_norm_2.bias output_norm.bias"},
    {"gpt-oss", "attn_q.bias attn_k.bias attn_v.bias attn_output.bias ffn_gate_inp.bias"},
};
constexpr std::string_view kAttentionBiases = "attn_q.bias attn_k.bias attn_v.bias attn_output.bias",
                           kMlpBiases = "ffn_gate.bias ffn_up.bias ffn_down.bias",
                           kDenseMlp = "ffn_gate.weight ffn_up.weight ffn_down.weight";

// Of "blk.3.attn_q.bias": "attn_q.bias".
std::string_view in_layer(std::string_view name) {
  return name.starts_with("blk.") ? name.substr(std::min(name.find('.', 4), name.size() - 1) + 1) : name;
}

[[noreturn]] void no_folder(const std::string& why) {
  base::misuse("naming", "names of transformers do not fit this model: " + why);
}

class Backwards {
 public:
  Backwards(const Model& model, const Architecture& row) : model_(model), row_(row) { draft_.begin_view(model); }

  core::Derived run() {
    layers_ = count("block_count");
    hidden_ = count("embedding_length");
    heads_ = count("attention.head_count");
    kv_heads_ = number("attention.head_count_kv") ? count("attention.head_count_kv") : heads_;
    if (hidden_ % heads_ != 0 && !number("attention.key_length")) no_folder("its heads do not divide its embeddings");
    if (heads_ % kv_heads_ != 0) no_folder("its heads of keys do not divide its heads of queries");
    head_ = number("attention.key_length") && !is(kDeepSeek) ? count("attention.key_length") : hidden_ / heads_;
    compare_with_tensors();
    set_config();
    for (const Tensor& tensor : model_) take(tensor);
    keep_others();
    if (!draft_.index_names().empty()) no_folder("two tensors would have the same name");
    out_.model = draft_.finish();
    return std::move(out_);
  }

 private:
  bool is(unsigned flag) const { return (row_.flags & flag) != 0; }

  // What the metadata state must be what the tensors show: transformers would build another model, or none.
  void compare_with_tensors() {
    std::set<std::uint64_t> layers;
    struct Rows {
      std::string_view name, key;
      std::uint64_t rows, also;
    };
    std::vector<Rows> all{{"blk.N.attn_k.weight", "attention.head_count_kv", kv_heads_ * head_, 0},
                          {"blk.N.attn_qkv.weight", "attention.head_count", (heads_ + 2 * kv_heads_) * head_, 0}};
    if (!is(kDeepSeek)) all.push_back({"blk.N.attn_q.weight", "attention.head_count", heads_ * head_, 0});
    if (value("feed_forward_length")) {
      const std::uint64_t rows = count("feed_forward_length");
      all.push_back({"blk.N.ffn_up.weight", "feed_forward_length", rows, 2 * rows});
    }
    for (const Tensor& tensor : model_) {
      const std::string_view name = tensor.name();
      if (!name.starts_with("blk.")) continue;
      if (const auto layer = wire::as_u64(name.substr(4, name.find('.', 4) - 4))) layers.insert(*layer);
      for (const Rows& each : all)
        if (match(each.name, name) && (!tensor.has_shape() || tensor.shape().empty() ||
                                       (tensor.shape()[0] != each.rows && tensor.shape()[0] != each.also)))
          no_folder(fmt::format("\"{}.{}\" contradicts tensor {}, which has the shape {}", row_.name, each.key,
                                core::quoted(name), core::shape_text(tensor.shape())));
    }
    if (layers.size() != layers_ || (!layers.empty() && *layers.rbegin() != layers_ - 1))
      no_folder(fmt::format("\"{}.block_count\" is {}, and it has the tensors of {} layers", row_.name, layers_,
                            layers.size()));
    const auto words = model_.find("token_embd.weight");
    if (!words || !words->has_shape() || words->shape().size() != 2 || words->shape()[1] != hidden_)
      no_folder(
          fmt::format("\"{}.embedding_length\" is {}, and its word embeddings are another matrix", row_.name, hidden_));
    if (const auto rotated = number("rope.dimension_count");
        rotated && !is(kDeepSeek) &&
        (*rotated < 2 || std::fmod(*rotated, 2) != 0 || *rotated > static_cast<double>(head_)))
      no_folder(fmt::format("\"{}.rope.dimension_count\" is no number of elements of a head", row_.name));
  }

  // ---- config.json ----

  const Value* value(std::string_view key) {
    const std::string name = std::string(row_.name) + "." + std::string(key);
    used_.insert(name);
    return model_.attribute(name);
  }
  std::optional<double> number(std::string_view key) {
    const Value* const found = value(key);
    const auto out = found ? found->as_f64() : std::nullopt;
    if (out && !std::isfinite(*out)) no_folder(fmt::format("\"{}.{}\" is {}", row_.name, key, found->to_text()));
    return out;
  }
  std::uint64_t count(std::string_view key) {
    const auto found = number(key);
    if (!found || !(*found >= 1) || *found > INT32_MAX || *found != std::floor(*found))
      no_folder(found ? fmt::format("\"{}.{}\" is {}", row_.name, key, *found)
                      : fmt::format("it has no number \"{}.{}\"", row_.name, key));
    return static_cast<std::uint64_t>(*found);
  }
  void set(std::string_view setting, std::string text) { settings_[std::string(setting)] = std::move(text); }
  // Values that the class computes in another way than llama.cpp are none of it.
  void write_settings() {
    for (const std::string_view word : split(row_.accepts, ' ')) {
      const auto found = settings_.find(word.substr(0, word.find('=')));
      const std::vector<std::string_view> values = split(word.substr(word.find('=') + 1), '|');
      if (found != settings_.end() && std::ranges::find(values, found->second) == values.end())
        no_folder(fmt::format("{} would be {}, and only {} is known to be what llama.cpp computes",
                              core::quoted(found->first), core::excerpt(found->second), values[0]));
    }
    for (const auto& [setting, text] : settings_) draft_.set_attribute("hf." + setting, Value::text(text));
  }
  // The shortest text of a number that was an f32.
  static std::string text_of(double real) {
    return real == std::floor(real) && std::abs(real) < 1e15 ? fmt::format("{:.1f}", real)
                                                             : fmt::format("{}", static_cast<float>(real));
  }
  // The spelling that the row has.
  std::string_view spelling(std::string_view settings) const {
    const std::vector<std::string_view> all = split(settings, ' ');
    for (const std::string_view each : all)
      for (const std::string_view word : split(row_.defaults, ' '))
        if (word.substr(0, word.find('=')) == each) return each;
    return all[0];
  }
  bool names_setting(std::string_view words, std::string_view setting) const {
    return std::ranges::any_of(split(words, ' '),
                               [&](std::string_view word) { return word.substr(0, word.find('=')) == setting; });
  }

  void set_config() {
    if (!model_.attribute("hf.architectures"))
      set("architectures", "[\"" + std::string(split(row_.classes, ' ')[0]) + "\"]");
    for (const std::string_view word : split(row_.accepts, ' ')) {
      const std::string_view setting = word.substr(0, word.find('=')),
                             first = split(word.substr(word.find('=') + 1), '|')[0];
      if (first != "null" && !setting.starts_with('_')) set(setting, std::string(first));
    }
    for (const BaseKey& each : kBaseKeys) {
      if (each.key == "attention.key_length" || each.key == "attention.head_count_kv" || each.key == "rope.freq_base")
        continue;
      if (const auto found = number(each.key))
        set(spelling(each.settings), each.real ? text_of(*found) : std::to_string(count(each.key)));
    }
    for (const std::string_view word : split(row_.keys, ' ')) {
      const std::size_t equals = word.find('='), colon = word.find(':');
      const Value* const found = value(word.substr(0, equals));
      if (found == nullptr) continue;
      const auto real = found->as_f64();
      set(word.substr(equals + 1, colon - equals - 1),
          word[colon + 1] == 'f' && real ? text_of(*real) : found->to_text());
    }
    const auto words = model_.find("token_embd.weight");
    set("vocab_size", std::to_string(words->shape()[0]));
    value("vocab_size");
    set("tie_word_embeddings", model_.find("output.weight") ? "false" : "true");
    if (is(kStatesBiases)) {
      set("attention_bias", has_one_of(kAttentionBiases) ? "true" : "false");
      set("mlp_bias", has_one_of(kMlpBiases) ? "true" : "false");
    }
    if (row_.name == "stablelm") set("use_qkv_bias", has_one_of(kInputBiases) ? "true" : "false");
    // A plan states the dtype anew where the output has another; a GGUF of this program may have transformers 5's key.
    const DType dtype = core::write_as(*words) == DType::unknown ? words->dtype() : core::write_as(*words);
    if (!model_.attribute("hf.dtype"))
      set("torch_dtype", dtype == DType::bf16 ? "bfloat16" : dtype == DType::f16 ? "float16" : "float32");
    for (const auto& [key, setting] :
         {std::pair("bos_token_id", "bos_token_id"), std::pair("eos_token_id", "eos_token_id"),
          std::pair("padding_token_id", "pad_token_id")})
      if (const Value* const id = model_.attribute(std::string(tokenizers::kLlamaCppKeys) + std::string(key)))
        set(setting, id->to_text());
    if (is(kTwoRotations)) set("query_pre_attn_scalar", std::to_string(layers_ == 62 ? hidden_ / heads_ : head_));
    if (row_.name == "gemma2") set("query_pre_attn_scalar", std::to_string(layers_ == 46 ? hidden_ / heads_ : head_));
    set_heads();
    if (is(kDeepSeek)) set_deep_seek();
    // A window of 4096 tokens, and attention that is not scaled, are what the classes have for absent ones.
    if (row_.classes == "MistralForCausalLM" && !model_.attribute("hf.sliding_window")) set("sliding_window", "null");
    if (row_.name == "granite" && number("attention.scale").value_or(0) == 0)
      set("attention_multiplier", fmt::format("{}", 1 / std::sqrt(static_cast<double>(head_))));
    if (const Value* const causal = value("attention.causal"); causal && !causal->as_bool().value_or(false))
      no_folder(fmt::format("\"{}.attention.causal\" is {}", row_.name, causal->to_text()));
    set_rotation();
    write_settings();
  }
  bool has_one_of(std::string_view tensors) const {
    return std::ranges::any_of(model_,
                               [&](const Tensor& tensor) { return core::has_word(tensors, in_layer(tensor.name())); });
  }

  // transformers has other numbers for absent settings than llama.cpp: these are always said.
  void set_heads() {
    if (row_.name == "falcon")
      set_falcon();
    else if (!is(kNoKeyValueHeads))
      set("num_key_value_heads", std::to_string(is(kDeepSeek) ? heads_ : kv_heads_));
    else if (kv_heads_ != heads_)
      no_folder("its class has as many heads of keys as of queries");
    const auto values = number("attention.value_length");
    if (is(kDeepSeek)) return;
    if (values && *values != static_cast<double>(head_)) no_folder("its keys and its values have different sizes");
    if (!is(kNoHeadSize))
      set("head_dim", std::to_string(head_));
    else if (head_ != hidden_ / heads_)
      no_folder("its class has heads of the size of the embeddings by their number");
  }
  // How many heads of keys there are is in three settings, and in the number of norms.
  void set_falcon() {
    std::uint64_t second = 0;
    for (const Tensor& tensor : model_)
      if (in_layer(tensor.name()) == "attn_norm_2.weight") ++second;
    two_norms_ = second != 0;
    if (two_norms_ && second != layers_) no_folder("not all of its layers have two norms");
    const bool groups = two_norms_ || (kv_heads_ != 1 && kv_heads_ != heads_);
    set("new_decoder_architecture", groups ? "true" : "false");
    set("multi_query", kv_heads_ == 1 || groups ? "true" : "false");
    set("num_kv_heads", std::to_string(kv_heads_));
    if (groups) set("num_ln_in_parallel_attn", two_norms_ ? "2" : "1");
  }

  void set_deep_seek() {
    const std::uint64_t rotated = count("rope.dimension_count");
    const std::uint64_t all = count("attention.key_length_mla");
    if (all <= rotated) no_folder("its keys have no elements besides those that are rotated");
    plain_ = all - rotated;
    value_ = count("attention.value_length_mla");
    set("qk_rope_head_dim", std::to_string(rotated));
    set("qk_nope_head_dim", std::to_string(plain_));
    set("v_head_dim", std::to_string(value_));
    set("kv_lora_rank", std::to_string(count("attention.kv_lora_rank")));
    set("q_lora_rank", number("attention.q_lora_rank") ? std::to_string(count("attention.q_lora_rank")) : "null");
    value("attention.key_length");
    value("expert_gating_func");
  }

  // The part of a head that gives this number of elements again, as transformers rounds it.
  std::string part_of_head(double rotated) const {
    const auto all = static_cast<double>(head_);
    double part = rotated / all;
    while (std::floor(part * all) < rotated) part = std::nextafter(part, 2);
    return part == 1 ? "1.0" : fmt::format("{}", part);
  }

  void set_rotation() {
    // llama.cpp's number where none is stated. GPT-2 rotates nothing.
    if (const auto theta = number("rope.freq_base"); !is(kNoRopeBase) || names_setting(row_.accepts, "rope_theta"))
      set(spelling(settings_of("rope.freq_base")), text_of(theta.value_or(10000)));
    const double rotated = number("rope.dimension_count").value_or(static_cast<double>(head_));
    if (const std::string_view part = spelling("partial_rotary_factor rotary_pct"); names_setting(row_.defaults, part))
      set(part, part_of_head(rotated));
    else if (!is(kDeepSeek) && rotated != static_cast<double>(head_))
      no_folder(fmt::format("\"{}.rope.dimension_count\" is {}, and its class rotates all {} elements of a head",
                            row_.name, rotated, head_));
    const Value* const type = value("rope.scaling.type");
    auto factor = number("rope.scaling.factor");
    if (!factor) factor = number("rope.scale_linear");  // of older files
    const auto original = number("rope.scaling.original_context_length");
    const std::string kind = type ? type->to_text() : "linear";
    value("rope.scaling.finetuned");
    if (const double by = number("rope.scaling.attn_factor").value_or(1);
        std::abs(by - attention_factor(original)) > 1e-5)
      no_folder(fmt::format("\"{}.rope.scaling.attn_factor\" is {}, and transformers computes {}", row_.name, by,
                            attention_factor(original)));
    std::string more;
    if (kind == "linear") {
      if (factor && *factor != 0 && *factor != 1)
        set("rope_scaling", fmt::format(R"({{"rope_type":"linear","factor":{}}})", text_of(*factor)));
    } else if (kind == "yarn" && factor && original) {
      for (const auto& [key, setting] :
           {std::pair("yarn_attn_factor", "attention_factor"), std::pair("yarn_beta_fast", "beta_fast"),
            std::pair("yarn_beta_slow", "beta_slow")})
        if (const auto found = number("rope.scaling." + std::string(key)))
          more += fmt::format(",\"{}\":{}", setting, text_of(*found));
      if (const auto all = number("rope.scaling.yarn_log_multiplier"))
        more += fmt::format(R"(,"mscale":{0},"mscale_all_dim":{0})", text_of(*all * 10));
      if (row_.name == "gpt-oss") more += R"(,"truncate":false)";
      set("rope_scaling", fmt::format(R"({{"rope_type":"yarn","factor":{},"original_max_position_embeddings":{}{}}})",
                                      text_of(*factor), static_cast<std::uint64_t>(*original), more));
    } else if (kind != "none" && kind != "longrope") {
      no_folder("its rotation is scaled by " + core::quoted(core::excerpt(kind)));
    }
    if (const auto window = is(kPhi3) ? number("attention.sliding_window") : std::nullopt; window && *window > 0)
      set("sliding_window", std::to_string(static_cast<std::uint64_t>(*window)));
    if (is(kPhi3) && original)
      set("original_max_position_embeddings", std::to_string(static_cast<std::uint64_t>(*original)));
    const bool longer = model_.find("rope_factors_long.weight").has_value();
    if (longer != model_.find("rope_factors_short.weight").has_value() || (kind == "longrope" && !longer) ||
        (longer && !is(kPhi3)))
      no_folder("its rotation has not the factors for long and for short texts of a Phi-3");
    const auto list = [&](std::string_view which) {
      const std::vector<float> all = floats(*model_.find("rope_factors_" + std::string(which) + ".weight"));
      std::string out;
      for (const float each : all) out += (out.empty() ? "[" : ",") + fmt::format("{}", each);
      if (static_cast<double>(all.size()) != std::floor(rotated / 2) ||
          !std::ranges::all_of(all, [](float each) { return std::isfinite(each); }))
        no_folder("its rotation has not a factor for each two elements of a head");
      return out + "]";
    };
    if (settings_.contains("rope_scaling") && (longer || model_.find(kRopeFactors)))
      no_folder("its rotation is scaled in two ways");
    if (longer)
      set("rope_scaling",
          fmt::format(R"({{"rope_type":"longrope","long_factor":{},"short_factor":{}}})", list("long"), list("short")));
    if (const auto tensor = model_.find(kRopeFactors)) set_llama3(floats(*tensor));
  }

  // By what transformers multiplies after the rotation: more than 1 only in a Phi-3 with more context than it began
  // with.
  double attention_factor(std::optional<double> original) {
    const double context = number("context_length").value_or(0);
    if (!is(kPhi3) || !model_.find("rope_factors_long.weight") || !original || !(*original > 1) || context <= *original)
      return 1;
    return std::sqrt(1 + std::log(context / *original) / std::log(*original));
  }

  static std::vector<float> floats(const Tensor& tensor) {
    constexpr std::uint64_t kMost = 65536;
    const auto numbers = core::elements_of(tensor, DType::f32);
    if (numbers->count() > kMost) no_folder("it has more factors of the rotation than a head has elements");
    std::vector<float> out(static_cast<std::size_t>(numbers->count()));
    numbers->read(0, out.size(), std::as_writable_bytes(std::span(out)), {});
    return out;
  }
  // The settings that give these factors, if they are the usual ones.
  void set_llama3(const std::vector<float>& factors) {
    if (factors.size() != head_ / 2) no_folder("its rotation has not a factor for each two elements of a head");
    RopeScaling scaling{.kind = RopeScaling::Kind::llama3};
    scaling.factor = factors.empty() ? 1 : static_cast<double>(*std::ranges::max_element(factors));
    const double theta = number("rope.freq_base").value_or(10000);
    for (const double original : {8192.0, 4096.0, 2048.0, 64.0, 32.0}) {
      scaling.original = original;
      if (rope_factors(scaling, theta, head_) != factors) continue;
      return set(
          "rope_scaling",
          fmt::format(
              R"({{"rope_type":"llama3","factor":{},"low_freq_factor":{:.1f},"high_freq_factor":{:.1f},"original_max_position_embeddings":{}}})",
              text_of(scaling.factor), scaling.low, scaling.high, static_cast<std::uint64_t>(original)));
    }
    no_folder("no settings of transformers are known to give the factors of its rotation");
  }

  // ---- tensors ----

  void take(const Tensor& tensor) {
    const std::string_view name = tensor.name();
    if (name == kRopeFactors || name == "rope_factors_long.weight" || name == "rope_factors_short.weight")
      return void(
          out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.type_name()), "in config.json"}));
    for (const std::span<const TensorRow> rows : {row_.names, row_.family})
      for (const TensorRow& row : rows) {
        if (row.to.empty() || (two_norms_ && row.from == "h.N.input_layernorm")) continue;
        if (const auto found = match(row.to, name)) {
          if (!row.to.ends_with(".bias") && !class_has(in_layer(name))) break;
          return put(tensor, row, *found);
        }
        if (!row.also.empty() && match(row.also, name)) return;  // with the other half
      }
    out_.blockers.push_back({LossKind::unsupported, subject(tensor), std::string(tensor.type_name()),
                             "transformers has no name for it in this architecture"});
  }
  // transformers passes over a tensor that its class does not have.
  bool class_has(std::string_view name) const {
    if (name.ends_with("_exps.weight") || name.starts_with("ffn_gate_inp.")) {
      if (!is(kExperts)) return false;
    } else if (is(kExperts) && !is(kDeepSeek) && core::has_word(kDenseMlp, name)) {
      return false;
    }
    if (!name.ends_with(".bias") && !core::has_word(kQueryKeyNorms, name)) return true;
    if (is(kStatesBiases) && (core::has_word(kAttentionBiases, name) || core::has_word(kMlpBiases, name))) return true;
    return std::ranges::any_of(kOwnTensors, [&](const OwnTensors& each) {
      return each.name == row_.name && core::has_word(each.tensors, name);
    });
  }

  void put(const Tensor& tensor, const TensorRow& row, const Named& named) {
    if (!tensor.has_shape() || tensor.unsupported() || tensor.block_type() != nullptr)
      return void(out_.blockers.push_back({LossKind::layout, subject(tensor), std::string(tensor.type_name()),
                                           "transformers has no such blocks; dequantizing makes it dense"}));
    const std::vector<std::uint64_t> shape(tensor.shape().begin(), tensor.shape().end());
    const bool bare =
        row.to.ends_with(".weight") || row.to.ends_with(".bias") || row.from.find("experts.gate_up") != row.from.npos;
    const std::vector<std::string_view> prefixes = split(row_.prefixes, ' ');
    const std::string prefix(row.to == "output" || prefixes.empty() ? std::string_view() : prefixes[0]);
    const std::string to = prefix + spelled(row.from, named.layer, 0, bare ? "" : named.tail);
    const auto columns = [&] { return shape.size() == 2 ? shape[1] : 1; };
    switch (row.change) {
      case Arrange::query_heads:
      case Arrange::key_heads:
        if (!is(kPermutes)) break;
        require(tensor, shape.size() <= 2 && shape[0] % head_ == 0 && head_ % 2 == 0);
        return add(
            tensor, to, shape, {own(tensor)}, shape[0], columns(),
            [=, head = head_, c = columns()](std::uint64_t at) { return Line{.first = unpaired_row(at, head) * c}; });
      case Arrange::transpose:
        if (shape.size() != 2) break;
        return add(tensor, to, {shape[1], shape[0]}, {own(tensor)}, shape[1], shape[0],
                   [step = shape[1]](std::uint64_t at) { return Line{.first = at, .step = step}; });
      case Arrange::columns: {
        require(tensor, shape.size() == 3);
        const std::uint64_t rows = shape[1], c = shape[2];
        return add(tensor, to, {shape[0], c, rows}, {own(tensor)}, shape[0] * c, rows,
                   [=](std::uint64_t at) { return Line{.first = at / c * rows * c + at % c, .step = c}; });
      }
      case Arrange::experts: {
        // Each becomes a tensor: a small file could have very many.
        constexpr std::uint64_t kMostExperts = 4096, kLeastElements = 64;
        require(tensor, shape.size() == 3 && shape[0] <= kMostExperts &&
                            base::element_count(std::span(shape).subspan(1)).value_or(0) >= kLeastElements);
        for (std::uint64_t e = 0; e < shape[0]; ++e)
          add(tensor, prefix + spelled(row.from, named.layer, e, named.tail), {shape[1], shape[2]}, {own(tensor)},
              shape[1], shape[2],
              [=, c = shape[2], rows = shape[1]](std::uint64_t at) { return Line{.first = (e * rows + at) * c}; });
        return;
      }
      case Arrange::grouped_qkv: {
        const std::uint64_t groups = kv_heads_, each = heads_ / groups, head = hidden_ / heads_, heads = heads_,
                            c = columns();
        require(tensor, shape.size() <= 2 && shape[0] == (heads + 2 * groups) * head);
        return add(tensor, to, shape, {own(tensor)}, shape[0], c, [=](std::uint64_t at) {
          const std::uint64_t h = at / head, group = h / (each + 2), i = h % (each + 2);
          const std::uint64_t from = i < each ? group * each + i : heads + (i - each) * groups + group;
          return Line{.first = (from * head + at % head) * c};
        });
      }
      case Arrange::even_odd:
      case Arrange::even_odd_bias: return interleaved(tensor, to, row, named, shape);
      case Arrange::key_value: return key_value(tensor, to, row, named, shape);
      default: break;
    }
    if (is(kNormsPlusOne) && name_of(tensor).ends_with("_norm.weight")) {
      add_dense(draft_, to, shape, added_to(tensor, -1), tensor);
      return changed(tensor, to + ", less 1");
    }
    draft_.adopt(to, tensor);
    changed(tensor, to);
  }
  static std::string_view name_of(const Tensor& tensor) { return tensor.name(); }

  // [experts, rows, columns] twice: [experts, columns, 2 rows], or of biases [experts, 2 rows].
  void interleaved(const Tensor& tensor, const std::string& to, const TensorRow& row, const Named& named,
                   const std::vector<std::uint64_t>& shape) {
    const auto other = model_.find(spelled(row.also, named.layer, 0, ""));
    const bool bias = row.change == Arrange::even_odd_bias;
    require(tensor, shape.size() == (bias ? 2U : 3U) && other && std::ranges::equal(other->shape(), shape) &&
                        other->dtype() == tensor.dtype() && other->block_type() == nullptr);
    const std::uint64_t rows = shape[1], c = bias ? 1 : shape[2];
    // First turned, so that what alternates are single elements of two rows.
    const std::vector<std::uint64_t> made =
        bias ? std::vector<std::uint64_t>{shape[0], 2 * rows} : std::vector<std::uint64_t>{shape[0], c, 2 * rows};
    add(tensor, to, made, {own(tensor), own(*other)}, shape[0] * c * 2 * rows, 1, [=](std::uint64_t at) {
      const std::uint64_t r = at % (2 * rows), column = at / (2 * rows) % c, e = at / (2 * rows) / c;
      return Line{.input = static_cast<std::size_t>(r % 2), .first = (e * rows + r / 2) * c + column};
    });
  }

  // Keys [heads, rank, plain] and values [heads, value, rank] as kv_b_proj.
  void key_value(const Tensor& tensor, const std::string& to, const TensorRow& row, const Named& named,
                 const std::vector<std::uint64_t>& shape) {
    const auto other = model_.find(spelled(row.also, named.layer, 0, ".weight"));
    const std::uint64_t plain = plain_, value = value_, each = plain + value;
    require(tensor, shape.size() == 3 && shape[0] == heads_ && shape[2] == plain && other && other->has_shape() &&
                        other->dtype() == tensor.dtype() && other->block_type() == nullptr &&
                        std::ranges::equal(other->shape(), std::vector<std::uint64_t>{heads_, value, shape[1]}));
    const std::uint64_t rank = shape[1];
    add(tensor, to, {heads_ * each, rank}, {own(tensor), own(*other)}, heads_ * each, rank, [=](std::uint64_t at) {
      const std::uint64_t h = at / each, in = at % each;
      return in < plain ? Line{.first = h * rank * plain + in, .step = plain}
                        : Line{.input = 1, .first = (h * value + in - plain) * rank};
    });
  }

  void require(const Tensor& tensor, bool good) {
    if (!good || info(tensor.dtype()).bits % 8 != 0 || tensor.layout() != Layout::dense)
      no_folder(
          fmt::format("tensor {} has the shape {}", core::quoted(tensor.name()), core::shape_text(tensor.shape())));
  }
  static core::ElementsPtr own(const Tensor& tensor) { return core::elements_of(tensor, tensor.dtype()); }
  void changed(const Tensor& tensor, std::string to) {
    out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.name()), std::move(to)});
  }
  void add(const Tensor& tensor, const std::string& to, std::vector<std::uint64_t> shape,
           std::vector<core::ElementsPtr> inputs, std::uint64_t rows, std::uint64_t columns,
           std::function<Line(std::uint64_t)> line) {
    add_dense(draft_, to, std::move(shape), arranged(std::move(inputs), rows, columns, std::move(line)), tensor);
    changed(tensor, to + ", as transformers stores it");
  }

  // ---- the rest ----

  void keep_others() {
    bool words = false;
    for (const auto& [key, value] : model_.attributes()) {
      if (draft_.attribute(key)) continue;
      if (key.starts_with("tokenizer.")) {
        words |= !key.ends_with("_token_id") && !(key == "tokenizer.ggml.model" && value.to_text() == "none");
      } else if (key.starts_with("hf.")) {
        draft_.set_attribute(key, value);
      } else if (key.starts_with("general.") || used_.contains(key)) {
        if (key == "general.name" && !draft_.attribute("hf._name_or_path"))
          draft_.set_attribute("hf._name_or_path", Value::text(value.to_text()));
      } else {
        draft_.set_attribute(key, value);
      }
    }
    if (!words || model_.tokenizer()) return;
    FolderVocabulary made = vocabulary_for_folder(model_);
    if (!made.refused.empty())
      out_.losses.push_back(
          {LossKind::tokenizer, "tokenizer", "a tokenizer of llama.cpp", "left out: " + made.refused});
    for (std::string& difference : made.differences)
      out_.losses.push_back({LossKind::tokenizer, "tokenizer", "its words in llama.cpp", std::move(difference)});
    for (auto& [name, value] : made.files)
      draft_.set_attribute(std::string(huggingface::kFileText) + name, std::move(value));
  }

  const Model& model_;
  const Architecture& row_;
  core::Draft draft_;
  core::Derived out_;
  std::uint64_t layers_ = 0, hidden_ = 0, heads_ = 0, kv_heads_ = 0, head_ = 0, plain_ = 0, value_ = 0;
  bool two_norms_ = false;  // of a Falcon
  std::set<std::string, std::less<>> used_;
  std::map<std::string, std::string, std::less<>> settings_;  // of config.json
};

}  // namespace

const Architecture* architecture_of_gguf(const Model& model) {
  const Value* const name = model.attribute(kArchitectureKey);
  if (name == nullptr || !model.find("token_embd.weight")) return nullptr;
  // A GGUF of this program may say the class.
  if (const Architecture* const own = architecture_of(model))
    return own->name == name->to_text() && (own->flags & kEncoder) == 0 && own->name != "t5" ? own : nullptr;
  const auto stated = [&](std::string_view key) {
    const Value* const value = model.attribute(name->to_text() + "." + std::string(key));
    return value ? value->as_f64().value_or(0) : 0;
  };
  const Architecture* out = nullptr;
  for (const Architecture& row : architectures()) {
    if (row.name != name->to_text() || (row.flags & kEncoder) != 0 || row.name == "t5") continue;
    if (((row.flags & kExperts) != 0) != (stated("expert_count") > 0)) continue;
    if ((row.flags & kDeepSeek) != 0 &&
        (row.accepts.find("scoring_func=sigmoid") != row.accepts.npos) != (stated("expert_gating_func") == 2))
      continue;
    if (out == nullptr) out = &row;
  }
  return out;
}

std::string refused_as_folder(const Model& model) {
  const Value* const name = model.attribute(kArchitectureKey);
  const bool words = model.find("token_embd.weight").has_value();
  const bool named =
      words || std::ranges::any_of(model, [](const Tensor& tensor) { return tensor.name().starts_with("blk."); });
  if (name == nullptr || !named || is_gguf_adapter(model) || architecture_of_gguf(model) != nullptr) return {};
  if (!words) return "it has no tensor \"token_embd.weight\", which names of transformers need";
  const bool decoder = std::ranges::any_of(architectures(), [&](const Architecture& row) {
    return row.name == name->to_text() && (row.flags & kEncoder) == 0 && row.name != "t5";
  });
  return decoder ? "other metadata say that it is of another architecture"
                 : "only decoders of known architectures get the names of transformers back";
}

core::Derived named_for_transformers(const Model& model) {
  return Backwards(model, *architecture_of_gguf(model)).run();
}

}  // namespace weighbridge::convert

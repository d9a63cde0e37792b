// SPDX-License-Identifier: Apache-2.0
// Collects the view. The keys are those of convert_hf_to_gguf.py of github.com/ggml-org/llama.cpp.
#include "convert/naming.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/fail.h"
#include "convert/derived.h"
#include "convert/llama_cpp.h"
#include "core/model/coded.h"
#include "core/model/draft.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/reading/encoder_settings.h"
#include "formats/slm/hyper.h"
#include "formats/slm/names.h"
#include "tokenizers/tokenizer_rules.h"
#include "wire/json_reader.h"

namespace weighbridge::convert {
namespace {

using core::subject, slm_format::Role;

// Tensors that llama.cpp's BERT graph does not use, and that embeddings do not need.
constexpr std::string_view kBertNeedless[] = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"};

// Rows of embeddings that need no tokens: models pad their vocabularies, and so many tokens without text cost little.
constexpr std::uint64_t kFewRows = 65536;

// For what llama.cpp itself would refuse; of other models this program does not know how to name them.
[[noreturn]] void refuse_result(const std::string& why) {
  base::misuse("naming", "llama.cpp could not run the result: " + why);
}
[[noreturn]] void refuse(const std::string& why) {
  base::misuse("naming", "names of llama.cpp do not fit this model: " + why);
}

// Collects the view.
class Naming {
 public:
  Naming(const Model& model, const GgufOptions& asked) : model_(model), asked_(asked) { draft_.begin_view(model); }

  core::Derived run() {
    const bool is_llama = slm_format::find_role(model_, Role::tok_embeddings, 0).has_value();
    if (is_llama)
      llama();
    else if (bert_prefix())
      bert();
    else if (model_.attribute("general.architecture") && model_.find("token_embd.weight"))
      base::misuse("naming", "the model has the names of llama.cpp already: leave the option out");
    else
      base::misuse("naming",
                   "names of llama.cpp are given to a Llama or a BERT, and this model has neither's word embeddings");
    draft_.set_tokenizer(std::nullopt);
    if (!draft_.index_names().empty()) refuse_result("two tensors would have the same name");
    require_all(is_llama);
    set("general.type", std::string("model"));
    set_file_keys(draft_, draft_.dtype(*draft_.find("token_embd.weight")));
    out_.model = draft_.finish();
    return std::move(out_);
  }

 private:
  // ---- metadata ----

  void set(std::string key, Value value) { draft_.set_attribute(std::move(key), std::move(value)); }
  void set(std::string key, std::uint64_t number) { set(std::move(key), Value::integer(number, DType::u32)); }
  void set(std::string key, double number) {
    set(std::move(key), Value::real(static_cast<double>(static_cast<float>(number)), DType::f32));
  }
  void set(std::string key, std::string text) { set(std::move(key), Value::text(std::move(text))); }

  // The first of these attributes that exists and is not null.
  const Value* first_of(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
      if (const Value* const value = model_.attribute(key); value && value->to_text() != "null") {
        used_.emplace(key);
        return value;
      }
    return nullptr;
  }
  std::uint64_t count_of(std::initializer_list<std::string_view> keys, std::optional<std::uint64_t> otherwise = {}) {
    const Value* const value = first_of(keys);
    const auto number = value ? value->as_u64() : otherwise;
    if (!number || *number == 0 || *number > INT32_MAX)
      refuse(value ? fmt::format("{} is {}", core::quoted(*keys.begin()), core::quoted(core::excerpt(value->to_text())))
                   : fmt::format("the metadata lacks {}", core::quoted(*keys.begin())));
    return *number;
  }
  double real_of(std::initializer_list<std::string_view> keys, std::optional<double> otherwise = {}) {
    const Value* const value = first_of(keys);
    const auto number = value ? value->as_f64() : otherwise;
    if (!number || !(*number > 0) || !std::isfinite(*number))
      refuse(value ? fmt::format("{} is {}", core::quoted(*keys.begin()), core::quoted(core::excerpt(value->to_text())))
                   : fmt::format("the metadata lacks {}", core::quoted(*keys.begin())));
    return *number;
  }
  // Refuses values other than these; an absent attribute counts as the first.
  void require(std::string_view key, std::initializer_list<std::string_view> values) {
    const Value* const value = first_of({key});
    if (value && std::ranges::find(values, value->to_text()) == values.end())
      refuse(fmt::format("{} is {}", core::quoted(key), core::quoted(core::excerpt(value->to_text()))));
  }

  void name_model(std::string_view architecture) {
    set("general.architecture", std::string(architecture));
    if (const Value* const name = first_of({"model_name", "hf._name_or_path", "general.name"}))
      set("general.name", name->to_text());
  }

  // Attributes without a key in llama.cpp keep their own keys.
  void keep_others() {
    for (const auto& [key, value] : model_.attributes()) {
      if (used_.contains(key) || draft_.attribute(key)) continue;
      if (key == "format") continue;  // transformers' mark in safetensors
      set(key, value);
    }
  }

  // An empty matrix could state any number of rows, and so of tokens: its elements bound them.
  static void require_matrix(const Tensor& words) {
    if (!words.has_shape() || words.shape().size() != 2 || words.shape()[0] == 0 || words.shape()[1] == 0)
      refuse("its word embeddings are not a matrix");
  }

  void set_vocabulary(std::uint64_t rows) {
    const auto tokenizer = model_.tokenizer();
    if (tokenizer && tokenizer->vocab_size > rows)
      refuse_result("its tokenizer has more tokens than its word embeddings have rows");
    // Each row beyond the vocabulary becomes a token of the output, although repeated rows (strides) take no room in
    // the input: bound them.
    if (tokenizer && rows / 2 > std::max<std::uint64_t>(kFewRows, tokenizer->tokens.size() + tokenizer->merges.size()))
      refuse("its word embeddings have more than twice as many rows as its tokenizer has tokens");
    // WordPiece settings keep their keys: llama.cpp ignores them, but our runtime applies them.
    if (!tokenizer || tokenizer->kind != Tokenizer::Kind::wordpiece) used_.emplace(tokenizers::kTokenizerRules);
    used_.emplace(tokenizers::kTokenizerUnheld);
    if (asked_.no_tokenizer && has_tokenizer(model_)) out_.losses.push_back(tokenizer_left_out());
    if (!tokenizer || asked_.no_tokenizer) return set("tokenizer.ggml.model", std::string("none"));
    Vocabulary made = vocabulary_for_llama_cpp(model_, *tokenizer, rows);
    for (auto& [key, value] : made.attributes) set(std::move(key), std::move(value));
    for (std::string& difference : made.differences)
      out_.losses.push_back({LossKind::tokenizer, "tokenizer", "its own rules", std::move(difference)});
  }

  // ---- tensors ----

  void adopt(const Tensor& tensor, const std::string& name) {
    if (name.size() > 63) refuse_result("the name of a tensor would be longer than 63 bytes");
    draft_.adopt(name, tensor);
    if (name != tensor.name())
      out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.name()), name});
  }
  void leave_out(const Tensor& tensor, const std::string& why) {
    out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.type_name()), "left out: " + why});
  }
  void lose(const Tensor& tensor) {
    out_.losses.push_back({LossKind::unsupported, subject(tensor), std::string(tensor.type_name()),
                           "left out: llama.cpp has no name for it"});
  }

  // The tensors that llama.cpp requires to open the model. A selection may have left some out.
  void require_all(bool is_llama) const {
    const auto require_tensor = [&](const std::string& name) {
      if (!draft_.find(name)) refuse_result("no tensor of the model becomes " + core::quoted(name));
    };
    if (is_llama) {
      for (std::size_t r = 0; r < slm_format::kModelRoles; ++r)
        if (static_cast<Role>(r) != Role::output) require_tensor(std::string(kLlamaNames[r]) + std::string(kWeight));
      for (std::uint64_t layer = 0; layer < layers_; ++layer)
        for (std::size_t r = slm_format::kModelRoles; r < std::size(kLlamaNames); ++r)
          require_tensor(in_block(layer, kLlamaNames[r], kWeight));
      return;
    }
    for (const auto& [folder, gguf] : kBertNames)
      if (gguf != "token_types") require_tensor(std::string(gguf) + std::string(kWeight));
    for (std::uint64_t layer = 0; layer < layers_; ++layer)
      for (const auto& [folder, gguf] : kBertLayerNames)
        for (const std::string_view tail : {kWeight, kBias}) require_tensor(in_block(layer, gguf, tail));
  }

  // ---- Llama ----

  void llama() {
    require("hf.model_type", {"llama"});
    require("hf.hidden_act", {"silu", "swish"});
    require("hf.attention_bias", {"false"});
    require("hf.mlp_bias", {"false"});
    require("hf.partial_rotary_factor", {"1.0", "1"});
    const Tensor words = *slm_format::find_role(model_, Role::tok_embeddings, 0);
    require_matrix(words);
    const std::uint64_t hidden = words.shape()[1];
    layers_ = count_of({"hf.num_hidden_layers", "num_hidden_layers", "slm.layer_count"});
    const std::uint64_t heads = count_of({"hf.num_attention_heads", "num_attention_heads", "slm.head_count"});
    const std::uint64_t head = count_of({"hf.head_dim", "head_dim", "slm.head_dim"}, hidden / heads);
    const std::uint64_t ffn = count_of({"hf.intermediate_size", "intermediate_size", "slm.ffn_size"});
    const auto key = slm_format::find_role(model_, Role::wk, 0);
    if (!key || !key->has_shape() || key->shape().size() != 2 || head % 2 != 0 || head > kMaxHead ||
        key->shape()[0] == 0 || key->shape()[0] % head != 0)
      refuse("the number of rows of its key matrix is not a multiple of the head size");
    name_model("llama");
    set("llama.block_count", layers_);
    set("llama.context_length", count_of({"hf.max_position_embeddings", "max_position_embeddings", "slm.max_context"}));
    set("llama.embedding_length", hidden);
    set("llama.feed_forward_length", ffn);
    set("llama.attention.head_count", heads);
    set("llama.attention.head_count_kv", key->shape()[0] / head);
    if (head * heads != hidden) {
      set("llama.attention.key_length", head);
      set("llama.attention.value_length", head);
    }
    set("llama.attention.layer_norm_rms_epsilon",
        real_of({"hf.rms_norm_eps", "rms_norm_eps", "slm.rms_norm_epsilon"}, 1e-6));
    set("llama.rope.dimension_count", head);
    set("llama.vocab_size", words.shape()[0]);
    rotation(head);
    for (const std::string_view known :
         {"hf.num_key_value_heads", "num_key_value_heads", "slm.kv_head_count", "hf.hidden_size", "hidden_size",
          "slm.hidden_size", "hf.vocab_size", "vocab_size", "slm.vocab_size", "hf.tie_word_embeddings",
          "tie_word_embeddings", "slm.flags", "hf.bos_token_id", "hf.eos_token_id", "hf.pad_token_id"})
      used_.emplace(known);
    set_vocabulary(words.shape()[0]);
    for (const Tensor& tensor : model_) llama_tensor(tensor, head);
    if (factors_.empty()) return keep_others();
    add_values(draft_, kRopeFactors, factors_);
    keep_others();
  }

  // rope_theta, and its scaling (transformers, modeling_rope_utils.py).
  void rotation(std::uint64_t head) {
    double theta = real_of({"hf.rope_theta", "rope_theta", "slm.rope_theta"}, 10000.0);
    for (const std::string_view key : kRotations) used_.emplace(key);
    if (const auto scaling = stated_rotation(model_, theta)) {
      theta = *scaling->theta;
      switch (scaling->kind) {
        case RopeScaling::Kind::none: break;
        case RopeScaling::Kind::linear:
          set("llama.rope.scaling.type", std::string("linear"));
          set("llama.rope.scaling.factor", scaling->factor);
          break;
        case RopeScaling::Kind::llama3: factors_ = rope_factors(*scaling, theta, head); break;
        case RopeScaling::Kind::other: refuse("the rotation is scaled by " + scaling->value_text);
      }
    }
    set("llama.rope.freq_base", theta);
  }
  void llama_tensor(const Tensor& tensor, std::uint64_t head) {
    const std::string_view name = tensor.name();
    if (slm_format::is_rotary_table(name)) return leave_out(tensor, "llama.cpp computes it");
    const auto layer = slm_format::layer_of(name);
    const auto respelled = slm_format::from_hugging_face(name);
    const std::string own = respelled ? respelled->name : std::string(name);
    for (std::size_t r = 0; r < std::size(kLlamaNames); ++r) {
      const auto role = static_cast<Role>(r);
      const bool in_layer = r >= slm_format::kModelRoles;
      if (in_layer != layer.has_value() || slm_format::spell(role, layer.value_or(0)) != own) continue;
      if (in_layer && *layer >= layers_) return lose(tensor);
      const std::string to =
          in_layer ? in_block(*layer, kLlamaNames[r], kWeight) : std::string(kLlamaNames[r]) + std::string(kWeight);
      return respelled && respelled->half_split ? add_paired(tensor, to, head) : adopt(tensor, to);
    }
    lose(tensor);
  }

  void add_paired(const Tensor& tensor, const std::string& name, std::uint64_t head) {
    if (!has_rows_to_pair(tensor, head))
      refuse(
          fmt::format("rows of tensor {} cannot be moved: it is {}", core::quoted(tensor.name()), tensor.type_name()));
    add_paired_rows(draft_, name, tensor, head);
    out_.changes.push_back({LossKind::name, subject(tensor), std::string(tensor.name()),
                            name + ", with the rows of each head in the order of llama.cpp"});
  }

  // ---- BERT ----

  std::optional<std::string> bert_prefix() const {
    for (const std::string prefix : {"", "bert."})
      if (model_.find(prefix + "embeddings.word_embeddings.weight")) return prefix;
    return std::nullopt;
  }

  void bert() {
    const std::string prefix = *bert_prefix();
    require("hf.model_type", {"bert"});
    require("hidden_act", {"gelu"});
    require("hf.position_embedding_type", {"absolute"});
    if (model_.attribute(core::kSentenceModules))
      refuse("it has modules of sentence-transformers besides the encoder, one pooling and Normalize");
    const Tensor words = *model_.find(prefix + "embeddings.word_embeddings.weight");
    require_matrix(words);
    const auto types = model_.find(prefix + "embeddings.token_type_embeddings.weight");
    name_model("bert");
    layers_ = count_of({"num_layers"});
    set("bert.block_count", layers_);
    set("bert.context_length", count_of({"max_position_emb"}));
    set("bert.embedding_length", words.shape()[1]);
    set("bert.feed_forward_length", count_of({"intermediate_size"}));
    set("bert.attention.head_count", count_of({"num_attention_heads"}));
    set("bert.attention.layer_norm_epsilon", real_of({"layer_norm_eps"}, 1e-12));
    set("bert.attention.causal", Value::boolean(false));
    pooling();
    for (const std::string_view known :
         {"embedding_dim", "hidden_size", "vocab_size", "hf.type_vocab_size", "hf.pad_token_id"})
      used_.emplace(known);
    if (const Value* const lower = model_.attribute(tokenizers::kLowerCase); lower && lower->as_bool() == true)
      used_.emplace(tokenizers::kLowerCase);  // as llama.cpp does
    if (types && types->shape().size() == 2) set("tokenizer.ggml.token_type_count", types->shape()[0]);
    if (!model_.tokenizer())
      set("bert.vocab_size", words.shape()[0]);  // without tokens, llama.cpp asks for their number
    set_vocabulary(words.shape()[0]);
    for (const Tensor& tensor : model_) bert_tensor(tensor, prefix);
    keep_others();
  }

  void pooling() {
    const Value* const mode = first_of({"pooling_mode"});
    const std::string text = mode ? mode->to_text() : "mean";
    if (text == "mean" || text == "cls" || text == "lasttoken")
      set("bert.pooling_type", std::uint64_t{text == "mean" ? 1U : text == "cls" ? 2U : 3U});
    else
      refuse(fmt::format("its tokens become one embedding by {}", core::quoted(core::excerpt(text))));
  }

  void bert_tensor(const Tensor& tensor, const std::string& prefix) {
    std::string_view name = tensor.name();
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    if (std::ranges::find(kBertNeedless, name) != std::end(kBertNeedless))
      return leave_out(tensor, "no embedding needs it");
    const std::string_view tail = name.ends_with(kBias) ? kBias : kWeight;
    if (!name.ends_with(tail)) return lose(tensor);
    const std::string_view stem = name.substr(0, name.size() - tail.size());
    if (const auto row = std::ranges::find(kBertNames, stem, &Respelling::folder); row != std::end(kBertNames))
      return adopt(tensor, std::string(row->gguf) + std::string(tail));
    if (!stem.starts_with(kBertLayer)) return lose(tensor);
    const std::size_t dot = stem.find('.', kBertLayer.size());
    if (dot == std::string_view::npos) return lose(tensor);
    const auto layer = wire::as_u64(stem.substr(kBertLayer.size(), dot - kBertLayer.size()));
    const auto row = std::ranges::find(kBertLayerNames, stem.substr(dot + 1), &Respelling::folder);
    if (!layer || *layer >= layers_ || row == std::end(kBertLayerNames)) return lose(tensor);
    adopt(tensor, in_block(*layer, row->gguf, tail));
  }

  // Elements of a head, far more than real ones have: bounds the table of factors.
  static constexpr std::uint64_t kMaxHead = 65536;
  const Model& model_;
  core::Draft draft_;
  core::Derived out_;
  const GgufOptions& asked_;
  std::uint64_t layers_ = 0;
  std::set<std::string, std::less<>> used_;  // attributes that a key of llama.cpp holds, or that it does not need
  std::vector<float> factors_;               // of rope_freqs
};

}  // namespace

bool has_tokenizer(const Model& model) {
  if (model.tokenizer() != nullptr) return true;
  constexpr std::string_view kFiles[] = {"tokenizer.json", "vocab.json", "vocab.txt", "merges.txt"};
  return std::ranges::any_of(core::folder_files(model), [&](const core::FolderFile& file) {
    return file.name.ends_with(".model") || std::ranges::find(kFiles, file.name) != std::end(kFiles);
  });
}

bool can_be_named_for_llama_cpp(const Model& model) {
  try {
    return named_for_llama_cpp(architecture_of(model) ? model : with_norm_names(model).model).blockers.empty();
  } catch (const Error&) {
    return false;
  }
}

core::Derived named_for_llama_cpp(const Model& model, const GgufOptions& asked) {
  core::require_values(model, "llama.cpp has no tensors of this kind", "convert");
  if (architecture_of(model) != nullptr) return named_by_architecture(model, asked);
  require_known_names(model);
  return Naming(model, asked).run();
}

}  // namespace weighbridge::convert

// SPDX-License-Identifier: Apache-2.0
// Compares what config.json states with the tensors: by a table of architectures, and without one by the numbers of
// layers.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/model/coded.h"
#include "core/model/words.h"
#include "core/reading/findings.h"
#include "doctor/damage.h"
#include "wire/json_reader.h"

namespace weighbridge::doctor {
namespace {

// Letters of shapes, and the keys of config.json for their sizes. A folder of a BERT has EMBD's keys for some.
struct Size {
  char letter;
  std::string_view keys[2];
};
constexpr Size kSizes[] = {
    {'H', {"hf.hidden_size", "hidden_size"}},
    {'I', {"hf.intermediate_size", "intermediate_size"}},
    {'V', {"hf.vocab_size", "vocab_size"}},
    {'L', {"hf.num_hidden_layers", "num_layers"}},
    {'A', {"hf.num_attention_heads", "num_attention_heads"}},
    {'G', {"hf.num_key_value_heads", ""}},  // as A without it
    {'D', {"hf.head_dim", ""}},             // H / A without it
};

// A weight by its name without ".weight". Of codes, the tensors with another ending stand for it.
struct Slot {
  std::string_view stem, shape;  // Q: A heads of D, K: G heads of D; "": not compared
};
struct Architecture {
  std::string_view type, layers;  // of config.json's model_type; what layers begin with, before their number
  std::string_view prefixes[2];   // before all names
  std::span<const Slot> once, of_layer;
  std::string_view head, headed;  // of a model whose class ends so, unless it is tied
};
constexpr Slot kLlama[] = {{"embed_tokens", "VH"}, {"norm", "H"}};
constexpr Slot kLlamaLayer[] = {
    {"input_layernorm", "H"},   {"self_attn.q_proj", "QH"}, {"self_attn.k_proj", "KH"},
    {"self_attn.v_proj", "KH"}, {"self_attn.o_proj", "HQ"}, {"post_attention_layernorm", "H"},
    {"mlp.gate_proj", "IH"},    {"mlp.up_proj", "IH"},      {"mlp.down_proj", "HI"}};
constexpr Slot kBert[] = {{"embeddings.word_embeddings", "VH"},
                          {"embeddings.position_embeddings", ""},
                          {"embeddings.token_type_embeddings", ""},
                          {"embeddings.LayerNorm", "H"}};
constexpr Slot kBertLayer[] = {{"attention.self.query", "HH"},
                               {"attention.self.key", "HH"},
                               {"attention.self.value", "HH"},
                               {"attention.output.dense", "HH"},
                               {"attention.output.LayerNorm", "H"},
                               {"intermediate.dense", "IH"},
                               {"output.dense", "HI"},
                               {"output.LayerNorm", "H"}};
constexpr Architecture kArchitectures[] = {
    {"llama", "layers.", {"model.", ""}, kLlama, kLlamaLayer, "lm_head", "ForCausalLM"},
    {"mistral", "layers.", {"model.", ""}, kLlama, kLlamaLayer, "lm_head", "ForCausalLM"},
    {"qwen2", "layers.", {"model.", ""}, kLlama, kLlamaLayer, "lm_head", "ForCausalLM"},
    {"qwen3", "layers.", {"model.", ""}, kLlama, kLlamaLayer, "lm_head", "ForCausalLM"},
    {"gemma", "layers.", {"model.", ""}, kLlama, kLlamaLayer, "", ""},
    {"bert", "encoder.layer.", {"", "bert."}, kBert, kBertLayer, "", ""},
    {"roberta", "encoder.layer.", {"", "roberta."}, kBert, kBertLayer, "", ""},
    {"xlm-roberta", "encoder.layer.", {"", "roberta."}, kBert, kBertLayer, "", ""},
    {"camembert", "encoder.layer.", {"", "roberta."}, kBert, kBertLayer, "", ""},
};

// What contains layers in models of any kind. A gap is one if the layers around it have the same tensors, at least so
// many: modules in a row may have functions without weights between them.
constexpr std::string_view kContainers[] = {"layers", "layer", "blocks", "block", "h"};
constexpr std::size_t kMinInLayer = 4;

std::string text_of(const Model& model, std::string_view key) {
  const Value* const value = model.attribute(key);
  return value != nullptr ? value->to_text() : std::string();
}

class Comparison {
 public:
  explicit Comparison(const Model& model) : model_(model) {
    for (const Size& size : kSizes)
      for (const std::string_view key : size.keys)
        if (const auto value = key.empty() ? std::nullopt : wire::as_u64(text_of(model, key)))
          sizes_.try_emplace(size.letter, *value);
    const auto derive = [&](char letter, char from, std::uint64_t divisor) {
      if (sizes_.contains(from) && divisor != 0) sizes_.try_emplace(letter, sizes_[from] / divisor);
    };
    const auto product = [&](char letter, char a, char b) {
      if (sizes_.contains(a) && sizes_.contains(b)) sizes_[letter] = sizes_[a] * sizes_[b];
    };
    derive('G', 'A', 1);
    if (sizes_.contains('A')) derive('D', 'H', sizes_['A']);
    product('Q', 'A', 'D');
    product('K', 'G', 'D');
    for (const Tensor& tensor : model) stems_.insert(stem_of(tensor.name()));
  }

  Disagreement run() {
    std::string type = text_of(model_, "hf.model_type");
    if (type.empty() && model_.attribute("embedding_dim") != nullptr) type = "bert";
    const auto known = std::ranges::find(kArchitectures, type, &Architecture::type);
    if (known == std::end(kArchitectures) || !compare(*known)) find_gaps();
    return std::move(out_);
  }

 private:
  static std::string stem_of(std::string_view name) { return std::string(name.substr(0, name.rfind('.'))); }

  // False: the tensors have other names.
  bool compare(const Architecture& kind) {
    const auto prefix = std::ranges::find_if(kind.prefixes, [&](std::string_view each) {
      const std::string start = std::string(each) + std::string(kind.layers);
      const auto first = stems_.lower_bound(start);
      return first != stems_.end() && first->starts_with(start);
    });
    const auto layers = sizes_.find('L');
    if (prefix == std::end(kind.prefixes) || layers == sizes_.end()) return false;
    const std::string before(*prefix);
    for (const Slot& slot : kind.once) look(before + std::string(slot.stem), slot.shape);
    // A stated number can be any: names are made as long as some can be listed.
    for (std::uint64_t i = 0; i < layers->second && out_.missing.size() < Diagnosis::kMaxNames; ++i)
      for (const Slot& slot : kind.of_layer)
        look(before + std::string(kind.layers) + std::to_string(i) + "." + std::string(slot.stem), slot.shape);
    const std::string next = before + std::string(kind.layers) + std::to_string(layers->second) + ".";
    if (const auto more = stems_.lower_bound(next); more != stems_.end() && more->starts_with(next))
      out_.findings.push_back(core::Findings::make(rules::kConfigLayers, {}, core::Said(layers->second), *more));
    if (!kind.head.empty() && text_of(model_, "hf.tie_word_embeddings") == "false" &&
        text_of(model_, "hf.architectures").find(std::string(kind.headed) + "\"") != std::string::npos)
      look(std::string(kind.head), "VH");
    return true;
  }

  // The stem has a tensor, and its weight the shape, where all sizes of that are stated.
  void look(const std::string& stem, std::string_view letters) {
    if (!stems_.contains(stem)) return out_.missing.push_back(stem + ".weight");
    const auto weight = model_.find(stem + ".weight");
    if (!weight || letters.empty() || weight->layout() != Layout::dense || core::coded(*weight) != nullptr) return;
    std::vector<std::uint64_t> expected;
    for (const char letter : letters) {
      if (!sizes_.contains(letter)) return;
      expected.push_back(sizes_[letter]);
    }
    const Shape shape = weight->shape();
    if (!std::ranges::equal(shape, expected))
      out_.findings.push_back(core::Findings::make(rules::kConfigShape, {.tensor = weight->name()},
                                                   core::shape_text(expected), core::shape_text(shape)));
  }

  // Layers whose numbers are skipped between layers with the same tensors.
  void find_gaps() {
    std::map<std::string, std::map<std::uint64_t, std::set<std::string>>> groups;
    for (const Tensor& tensor : model_)
      if (const auto [group, number, rest] = split(tensor.name()); !group.empty())
        groups[std::string(group)][number].emplace(rest);
    for (const auto& [group, layers] : groups) {
      const std::pair<const std::uint64_t, std::set<std::string>>* last = nullptr;
      for (const auto& layer : layers) {
        if (last != nullptr && layer.first > last->first + 1 && layer.second == last->second &&
            layer.second.size() >= kMinInLayer)
          for (std::uint64_t i = last->first + 1; i < layer.first; ++i)
            for (const std::string& rest : layer.second) {
              if (out_.missing.size() >= Diagnosis::kMaxNames) return;
              out_.missing.push_back(group + "." + std::to_string(i) + "." + rest);
            }
        last = &layer;
      }
    }
  }

  struct Split {
    std::string_view group{};
    std::uint64_t number = 0;
    std::string_view rest{};
  };
  // The first container of layers in a name: "model.layers", 3, "mlp.up_proj.weight".
  static Split split(std::string_view name) {
    for (std::size_t begin = 0, dot = name.find('.'); dot != name.npos; begin = dot + 1, dot = name.find('.', begin)) {
      if (std::ranges::find(kContainers, name.substr(begin, dot - begin)) == std::end(kContainers)) continue;
      const std::size_t end = name.find('.', dot + 1);
      if (end == name.npos) return {};
      const auto number = wire::as_u64(name.substr(dot + 1, end - dot - 1));
      if (number) return {name.substr(0, dot), *number, name.substr(end + 1)};
    }
    return {};
  }

  const Model& model_;
  std::map<char, std::uint64_t> sizes_;
  std::set<std::string, std::less<>> stems_;
  Disagreement out_;
};

}  // namespace

Disagreement compare_with_config(const Model& model) { return Comparison(model).run(); }

}  // namespace weighbridge::doctor

// SPDX-License-Identifier: Apache-2.0
// Reads the sizes of an encoder and reports which tensor or key is wrong.
#include "runtime/embed/config.h"

#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/words.h"
#include "runtime/embed/modules.h"
#include "tokenizers/described.h"

namespace weighbridge::bert {
namespace {

using core::shape_text, embed::bad_key;

constexpr std::string_view kWords = "embeddings.word_embeddings.weight",
                           kPositions = "embeddings.position_embeddings.weight";
constexpr std::uint64_t kMaxColumns = 65536;  // so that a sum of products of bytes fits in 32 bits

Tensor find(const Model& model, const Config& config, std::string_view name) {
  const std::string full = config.prefix + std::string(name);
  if (const auto found = model.find(full)) return *found;
  fail("missing-tensor", full, "the model has no tensor '" + full + "', which a BERT encoder needs");
}

// Both dimensions of a matrix.
std::pair<std::uint64_t, std::uint64_t> matrix(const Model& model, const Config& config, std::string_view name) {
  const Tensor tensor = find(model, config, name);
  if (!tensor.has_shape() || tensor.shape().size() != 2 || tensor.shape()[0] == 0 || tensor.shape()[1] == 0)
    fail("shape", tensor.name(),
         "tensor '" + std::string(tensor.name()) + "' has to be a matrix, and its shape is " +
             (tensor.has_shape() ? shape_text(tensor.shape()) : "not known"));
  return {tensor.shape()[0], tensor.shape()[1]};
}

std::optional<std::uint64_t> positive(const Model& model, std::string_view key) {
  return embed::positive(key, model.attribute(key));
}
std::optional<bool> truth(const Model& model, std::string_view key) { return embed::truth(key, model.attribute(key)); }

std::uint64_t count_layers(const Model& model, const Config& config) {
  const auto present = [&](std::uint64_t layer) {
    return model.find(config.prefix + "encoder.layer." + std::to_string(layer) + ".attention.self.query.weight")
        .has_value();
  };
  std::uint64_t layers = 0;
  while (layers < model.size() && present(layers)) ++layers;
  const auto said = positive(model, "num_layers");
  if (said && *said != layers) {
    const std::string full =
        config.prefix + "encoder.layer." + std::to_string(std::min(*said, layers)) + ".attention.self.query.weight";
    fail("layers", full,
         "the model's metadata key 'num_layers' is " + std::to_string(*said) + ", and it has the tensors of " +
             std::to_string(layers) + " ('" + full + (*said > layers ? "' is missing)" : "' is one too many)"));
  }
  if (layers == 0) find(model, config, "encoder.layer.0.attention.self.query.weight");
  return layers;
}

std::uint64_t count_heads(const Model& model, const Config& config, std::uint64_t asked) {
  const auto said = positive(model, "num_attention_heads");
  const std::uint64_t heads = asked != 0 ? asked : said.value_or(0);
  if (heads == 0)
    base::misuse(
        "no-heads",
        "the model's metadata has no key 'num_attention_heads', which no tensor has: say how many heads it has, or "
        "open the model as a .weights file or a Hugging Face folder",
        base::option_hint("heads"));
  if (asked != 0 && config.hidden % asked != 0)
    base::misuse("heads", std::to_string(asked) + " attention heads are asked for, which does not divide the width " +
                              std::to_string(config.hidden) + " of '" + config.prefix + std::string(kWords) + "'");
  if (config.hidden % heads != 0)
    fail("heads", {},
         "'num_attention_heads' is " + std::to_string(heads) + ", which does not divide the width " +
             std::to_string(config.hidden) + " of '" + config.prefix + std::string(kWords) + "'");
  return heads;
}

kernels::Activation read_activation(const Model& model) {
  const Value* value = model.attribute("hidden_act");
  if (value == nullptr) return kernels::Activation::gelu;
  const std::string text = value->to_text();
  if (text == "gelu") return kernels::Activation::gelu;
  if (text == "gelu_new" || text == "gelu_pytorch_tanh") return kernels::Activation::gelu_tanh;
  base::unsupported("embed/activation", "the model's metadata key 'hidden_act' is " + text +
                                            ", and this build computes gelu, gelu_new and gelu_pytorch_tanh");
}

std::vector<Pooling> read_pooling(const Model& model) {
  constexpr std::size_t kMaxPoolings = 16;
  const Value* value = model.attribute("pooling_mode");
  if (value == nullptr) return {Pooling::mean};
  const std::string text = value->to_text();
  std::vector<Pooling> out;
  for (std::string_view rest = text;;) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    const auto pooling = pooling_from_name(rest.substr(0, end));
    if (!pooling || out.size() == kMaxPoolings)
      base::unsupported("embed/pooling", "the model's metadata key 'pooling_mode' is " + core::excerpt(text) +
                                             ", and this build computes mean, cls, max, mean_sqrt_len, weightedmean, "
                                             "lasttoken, and up to 16 of them joined by +");
    out.push_back(*pooling);
    if (end == rest.size()) return out;
    rest.remove_prefix(end + 1);
  }
}

void read_modules(const Model& model, Config& config) {
  config.include_prompt = truth(model, core::kIncludePrompt).value_or(true);
  config.modules = embed::modules_of(model);
  for (std::size_t i = config.modules.size(); i-- > 0;) {
    const core::SentenceModule& module = config.modules[i];
    if (module.type != core::SentenceModule::Type::weighted_layers) continue;
    if (config.first_layer || module.first_layer > config.layers)
      bad_key(core::kSentenceModules, *model.attribute(core::kSentenceModules),
              "one WeightedLayerPooling over the layers of the model is possible");
    config.first_layer = module.first_layer;
    config.layers_path = module.path;
    config.modules.erase(config.modules.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::uint64_t width = config.hidden * config.pooling.size();
  for (const core::SentenceModule& module : config.modules)
    if (module.type == core::SentenceModule::Type::dense) width = module.outputs;
  config.kept = embed::kept_numbers(model, width);
}

// Tensors of the encoder that other models have, such as distances between tokens: what they mean is not computed.
void refuse_others(const Model& model, const Config& config) {
  constexpr std::string_view kOfLayer[] = {
      "attention.self.query",       "attention.self.key", "attention.self.value", "attention.output.dense",
      "attention.output.LayerNorm", "intermediate.dense", "output.dense",         "output.LayerNorm"};
  constexpr std::string_view kOfTokens[] = {"embeddings.word_embeddings.weight",
                                            "embeddings.position_embeddings.weight",
                                            "embeddings.token_type_embeddings.weight",
                                            "embeddings.LayerNorm.weight",
                                            "embeddings.LayerNorm.bias",
                                            "embeddings.position_ids",
                                            "embeddings.token_type_ids"};
  constexpr std::string_view kLayer = "encoder.layer.";
  for (const Tensor& tensor : model) {
    std::string_view name = tensor.name();
    if (!name.starts_with(config.prefix)) continue;
    name.remove_prefix(config.prefix.size());
    bool known = true;
    if (name.starts_with(kLayer)) {
      const std::size_t dot = name.find('.', kLayer.size());
      const std::string_view rest = dot == name.npos ? std::string_view{} : name.substr(dot + 1);
      known = std::ranges::any_of(kOfLayer, [&](std::string_view stem) {
        return rest.starts_with(stem) && (rest.substr(stem.size()) == ".weight" || rest.substr(stem.size()) == ".bias");
      });
    } else if (name.starts_with("encoder.") || name.starts_with("embeddings.")) {
      known = std::ranges::find(kOfTokens, name) != std::end(kOfTokens);
    }
    if (!known)
      base::unsupported("embed/tensors", "the encoder has a tensor " + core::quoted(core::excerpt(tensor.name(), 80)) +
                                             ", which no BERT of this build has: its vectors would be others");
  }
}

float read_epsilon(const Model& model) {
  const Value* value = model.attribute("layer_norm_eps");
  if (value == nullptr) return 1e-12F;
  const auto number = value->as_f64();
  if (!number || !(*number >= 0) || !(*number < 1)) bad_key("layer_norm_eps", *value, "a number from 0 to 1 is needed");
  return base::to_float(*number);
}

std::uint64_t read_max_length(const Model& model, const Config& config, std::uint64_t asked) {
  if (asked != 0) {
    if (asked < 2 || asked > config.positions)
      base::misuse("max-length", "texts of up to " + std::to_string(asked) + " tokens are asked for, where 2 to " +
                                     std::to_string(config.positions) + ", the model's positions, are possible");
    return asked;
  }
  return tokenizers::usual_length(positive(model, "max_seq_length"), config.positions);
}

}  // namespace

Config read_config(const Model& model, const EmbedOptions& options) {
  Config config;
  if (!model.find(kWords) && model.find("bert." + std::string(kWords))) config.prefix = "bert.";
  std::tie(config.vocabulary, config.hidden) = matrix(model, config, kWords);
  config.positions = matrix(model, config, kPositions).first;
  if (config.positions < 2)
    fail("shape", config.prefix + std::string(kPositions),
         "tensor '" + config.prefix + std::string(kPositions) + "' has one row, and a text has at least two tokens");
  config.layers = count_layers(model, config);
  config.intermediate = matrix(model, config, "encoder.layer.0.intermediate.dense.weight").first;
  if (config.hidden > kMaxColumns || config.intermediate > kMaxColumns)
    base::unsupported("embed/width", "the model's matrices have " +
                                         std::to_string(std::max(config.hidden, config.intermediate)) +
                                         " columns, and this build computes with at most 65,536");
  config.heads = count_heads(model, config, options.heads);
  config.activation = read_activation(model);
  config.epsilon = read_epsilon(model);
  config.pooling = options.pooling ? std::vector{*options.pooling} : read_pooling(model);
  config.normalize = options.normalize ? *options.normalize : truth(model, "normalize").value_or(true);
  config.lower_case = options.lower_case ? *options.lower_case : truth(model, "do_lower_case").value_or(true);
  config.max_length = read_max_length(model, config, options.max_length);
  read_modules(model, config);
  refuse_others(model, config);
  return config;
}

Tensor require(const Model& model, const Config& config, const std::string& name,
               std::initializer_list<std::uint64_t> shape) {
  const Tensor tensor = find(model, config, name);
  if (!tensor.has_shape() || !std::ranges::equal(tensor.shape(), shape)) {
    const std::vector<std::uint64_t> wanted(shape);
    fail("shape", tensor.name(),
         "tensor '" + std::string(tensor.name()) + "' has the shape " +
             (tensor.has_shape() ? shape_text(tensor.shape()) : "that nobody knows") + ", where this model needs " +
             shape_text(wanted));
  }
  if (const Finding* why = tensor.unsupported()) throw Error(*why);
  return tensor;
}

}  // namespace weighbridge::bert

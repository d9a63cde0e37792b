// SPDX-License-Identifier: Apache-2.0
// Renames tensors, and collects EMBD's keys from the metadata of llama.cpp.
#include "runtime/bert/source.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "convert/llama_cpp.h"
#include "core/draft.h"
#include "core/words.h"
#include "runtime/bert/config.h"
#include "wire/json_reader.h"

namespace weighbridge::bert {
namespace {

using convert::kBertLayer, convert::kBertLayerNames, convert::kBertNames, convert::Respelling;
using core::quoted;

constexpr std::string_view kArchitecture = "general.architecture", kBlock = "blk.";

[[noreturn]] void refuse(std::string_view what, const std::string& why) {
  base::unsupported("embed/" + std::string(what), "this program does not run the model: " + why);
}

// The name of Hugging Face for one of llama.cpp; nullopt if it is none of a BERT.
std::optional<std::string> respelled(std::string_view name) {
  const std::string_view tail = name.ends_with(convert::kBias) ? convert::kBias : convert::kWeight;
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

Model as_encoder(const Model& model) {
  const Value* const architecture = model.attribute(kArchitecture);
  if (!architecture || model.find("embeddings.word_embeddings.weight")) return model;
  if (architecture->to_text() != "bert")
    refuse("architecture", "its architecture is " + quoted(core::excerpt(architecture->to_text())));
  const auto said = [&](std::string_view key) { return model.attribute("bert." + std::string(key)); };
  if (const Value* const causal = said("attention.causal"); causal && causal->as_bool() != false)
    refuse("key", "'bert.attention.causal' is not false");
  core::Draft draft;
  draft.begin_view(model);
  const std::pair<std::string_view, std::string_view> keys[] = {{"block_count", "num_layers"},
                                                                {"attention.head_count", "num_attention_heads"},
                                                                {"attention.layer_norm_epsilon", "layer_norm_eps"}};
  for (const auto& [from, to] : keys)
    if (const Value* const value = said(from)) draft.set_attribute(std::string(to), *value);
  if (const Value* const pooling = said("pooling_type")) {
    const auto kind = pooling->as_u64();
    if (kind != 1U && kind != 2U)
      refuse("pooling", "'bert.pooling_type' is " + quoted(core::excerpt(pooling->to_text())) +
                            ", and this build computes 1 (mean) and 2 (cls)");
    if (!model.attribute("pooling_mode")) draft.set_attribute("pooling_mode", Value::text(kind == 1U ? "mean" : "cls"));
  }
  for (const auto& [key, value] : model.attributes())
    if (!draft.attribute(key)) draft.set_attribute(key, value);
  for (const Tensor& tensor : model) {
    const auto name = respelled(tensor.name());
    if (!name) refuse("tensors", "it has a tensor " + quoted(core::excerpt(tensor.name())));
    draft.adopt(*name, tensor);
  }
  if (!draft.index_names().empty()) fail("tensors", {}, "two tensors of the model would have the same name");
  return draft.finish();
}

}  // namespace weighbridge::bert

// SPDX-License-Identifier: Apache-2.0
// Shapes from numbers, and numbers from shapes.
#include "formats/embd/architecture.h"

namespace weighbridge::embd {
namespace {

constexpr std::uint64_t kSegments = 2;
constexpr std::string_view kFirstQuery = "encoder.layer.0.attention.self.query.weight";

std::uint64_t size_of(const Numbers& numbers, Size size) noexcept {
  switch (size) {
    case Size::hidden: return numbers.hidden_size;
    case Size::intermediate: return numbers.intermediate_size;
    case Size::vocabulary: return numbers.vocab_size;
    case Size::positions: return numbers.max_position_emb;
    case Size::segments: return kSegments;
    case Size::none: break;
  }
  return 0;
}

// A dimension of a matrix; 0 if there is no such matrix.
std::uint64_t dimension(const Model& model, std::string_view name, std::size_t which) {
  const auto tensor = model.find(name);
  return tensor && tensor->has_shape() && tensor->shape().size() == 2 ? tensor->shape()[which] : 0;
}

}  // namespace

std::size_t detail::shape_of(const Numbers& numbers, const ExpectedName& expected,
                             std::array<std::uint64_t, 2>& out) noexcept {
  std::size_t rank = 0;
  for (const Size size : expected.shape)
    if (size != Size::none) out[rank++] = size_of(numbers, size);
  return rank;
}

bool layers_fit(const Numbers& numbers, std::uint64_t tensors) noexcept {
  return tensors >= kEmbeddingTensors && numbers.num_layers <= (tensors - kEmbeddingTensors) / kLayerTensors;
}

Numbers derive(const Model& model) {
  Numbers numbers;
  numbers.vocab_size = dimension(model, kWordEmbeddings, 0);
  numbers.hidden_size = numbers.embedding_dim = dimension(model, kWordEmbeddings, 1);
  numbers.max_position_emb = dimension(model, kPositionEmbeddings, 0);
  numbers.intermediate_size = dimension(model, kFirstIntermediate, 0);
  const auto layer_there = [&](std::uint64_t layer) {
    return model.find("encoder.layer." + std::to_string(layer) + ".attention.self.query.weight").has_value();
  };
  while (numbers.num_layers < model.size() && layer_there(numbers.num_layers)) ++numbers.num_layers;
  return numbers;
}

std::string_view teller(std::string_view key) noexcept {
  if (key == "num_attention_heads") return {};
  if (key == "num_layers") return kFirstQuery;
  if (key == "intermediate_size") return kFirstIntermediate;
  if (key == "max_position_emb") return kPositionEmbeddings;
  return kWordEmbeddings;
}

}  // namespace weighbridge::embd

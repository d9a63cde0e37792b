// SPDX-License-Identifier: Apache-2.0
// The tensors that a model with given sizes has ("Required Tensors", shapes generalized by reading E7), and the sizes
// that follow from its tensors. Reader and writer share one list. The index, which index.cc reads, is checked against
// it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "formats/embd/layout.h"
#include "formats/embd/metadata.h"
#include "weighbridge/model.h"

namespace weighbridge::embd {

inline constexpr std::string_view kWordEmbeddings = "embeddings.word_embeddings.weight",
                                  kPositionEmbeddings = "embeddings.position_embeddings.weight",
                                  kFirstIntermediate = "encoder.layer.0.intermediate.dense.weight",
                                  kPositionIds = "embeddings.position_ids";
inline constexpr std::uint64_t kEmbeddingTensors = 5, kLayerTensors = 16;

enum class Size : std::uint8_t { none, hidden, intermediate, vocabulary, positions, segments };

struct ExpectedName {
  std::string_view name;  // for a tensor of a layer: the part after "encoder.layer.N."
  std::array<Size, 2> shape;
};

inline constexpr ExpectedName kEmbeddings[kEmbeddingTensors] = {
    {kWordEmbeddings, {Size::vocabulary, Size::hidden}},
    {kPositionEmbeddings, {Size::positions, Size::hidden}},
    {"embeddings.token_type_embeddings.weight", {Size::segments, Size::hidden}},
    {"embeddings.LayerNorm.weight", {Size::hidden, Size::none}},
    {"embeddings.LayerNorm.bias", {Size::hidden, Size::none}},
};
inline constexpr ExpectedName kLayer[kLayerTensors] = {
    {"attention.self.query.weight", {Size::hidden, Size::hidden}},
    {"attention.self.query.bias", {Size::hidden, Size::none}},
    {"attention.self.key.weight", {Size::hidden, Size::hidden}},
    {"attention.self.key.bias", {Size::hidden, Size::none}},
    {"attention.self.value.weight", {Size::hidden, Size::hidden}},
    {"attention.self.value.bias", {Size::hidden, Size::none}},
    {"attention.output.dense.weight", {Size::hidden, Size::hidden}},
    {"attention.output.dense.bias", {Size::hidden, Size::none}},
    {"attention.output.LayerNorm.weight", {Size::hidden, Size::none}},
    {"attention.output.LayerNorm.bias", {Size::hidden, Size::none}},
    {"intermediate.dense.weight", {Size::intermediate, Size::hidden}},
    {"intermediate.dense.bias", {Size::intermediate, Size::none}},
    {"output.dense.weight", {Size::hidden, Size::intermediate}},
    {"output.dense.bias", {Size::hidden, Size::none}},
    {"output.LayerNorm.weight", {Size::hidden, Size::none}},
    {"output.LayerNorm.bias", {Size::hidden, Size::none}},
};
// "Pooler (Optional)": may be absent, but must have these shapes.
inline constexpr ExpectedName kPooler[] = {
    {"pooler.dense.weight", {Size::hidden, Size::hidden}},
    {"pooler.dense.bias", {Size::hidden, Size::none}},
};

struct Expected {
  std::string_view name;
  Shape shape;
  bool required = true;
};

// Whether a file with `tensors` tensors can hold num_layers layers. Ask this before looping over the layers.
bool layers_fit(const Numbers&, std::uint64_t tensors) noexcept;

namespace detail {
std::size_t shape_of(const Numbers&, const ExpectedName&, std::array<std::uint64_t, 2>& out) noexcept;
}

// Calls f(const Expected&) for each tensor of the tables, in their order. Call it only after layers_fit().
template <class F> void for_each_expected(const Numbers& numbers, F f) {
  std::array<std::uint64_t, 2> dims{};
  const auto one = [&](std::string_view name, const ExpectedName& expected, bool required) {
    const std::size_t rank = detail::shape_of(numbers, expected, dims);
    f(Expected{name, Shape(dims.data(), rank), required});
  };
  for (const ExpectedName& expected : kEmbeddings) one(expected.name, expected, true);
  std::string name;
  for (std::uint64_t layer = 0; layer < numbers.num_layers; ++layer) {
    const std::string prefix = "encoder.layer." + std::to_string(layer) + ".";
    for (const ExpectedName& expected : kLayer) one(name.assign(prefix).append(expected.name), expected, true);
  }
  for (const ExpectedName& expected : kPooler) one(expected.name, expected, false);
}

// Each number as it follows from the shapes of the tensors; 0 if it does not. num_attention_heads never does.
Numbers derive(const Model&);
// The tensor whose shape gives a number; "" for num_attention_heads.
std::string_view teller(std::string_view key) noexcept;

// Reads the tensor index into the draft, and checks the tensors against the metadata.

// The sum of name_length over `count` descriptors.
std::uint64_t names_size(const char* descriptors, std::uint64_t count) noexcept;

// Adds the tensors of an index (descriptors, then all their names) that the draft's retained header holds and that
// begins at header.tensor_index_offset of the file. The data section must lie inside the file. Without numbers, because
// the metadata is broken, the tensors are not checked against them. Broken tensors are left out.
void read_index(std::string_view index, const Header&, const std::optional<Numbers>&, core::Findings&, core::Draft&);

}  // namespace weighbridge::embd

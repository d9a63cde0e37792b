// SPDX-License-Identifier: Apache-2.0
// Names of norms: those of old checkpoints change, others do not.
#include "convert/derived.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>

namespace weighbridge::convert {
namespace {

// An f32 tensor of one element for each name.
Model model_of(const std::vector<std::string>& names) {
  const auto one = std::make_shared<const float>(1.0F);
  Builder builder;
  for (const std::string& name : names)
    builder.tensor(name, DType::f32, {1}, {std::as_bytes(std::span(one.get(), 1)), one});
  return builder.build();
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> out;
  for (const Tensor& tensor : model) out.emplace_back(tensor.name());
  return out;
}

const std::string kWords = "embeddings.word_embeddings.weight";

TEST(EncoderParts, OldNamesOfNormsBecomeTodays) {
  const core::Derived renamed = with_norm_names(model_of({"bert." + kWords, "bert.embeddings.LayerNorm.gamma",
                                                          "bert.embeddings.LayerNorm.beta", "block.0.gamma", "gamma"}));
  const std::vector<std::string> wanted = {"bert." + kWords, "bert.embeddings.LayerNorm.weight",
                                           "bert.embeddings.LayerNorm.bias", "block.0.gamma", "gamma"};
  EXPECT_EQ(names_of(renamed.model), wanted);
  EXPECT_EQ(renamed.changes.size(), 2U);
}

TEST(EncoderParts, NamesOfOtherModelsStay) {
  const std::vector<std::string> names = {"embeddings.LayerNorm.gamma", "block.0.gamma"};
  EXPECT_EQ(names_of(with_norm_names(model_of(names)).model), names);
  const std::vector<std::string> both = {kWords, "embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"};
  EXPECT_EQ(names_of(with_norm_names(model_of(both)).model), both);
}

}  // namespace
}  // namespace weighbridge::convert

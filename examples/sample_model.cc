// SPDX-License-Identifier: Apache-2.0
// Makes a small model in memory and saves it in the container that the file's extension names. The demo uses it; it is
// also an example of Builder and save().
//
// usage: sample_model OUT
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace wb = weighbridge;

namespace {

// A fixed sequence of numbers that look like weights: near zero, both signs, the same on every machine.
class Weights {
 public:
  float next() noexcept {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(static_cast<double>(state_ >> 40U) / 16777216.0 - 0.5) * 0.1F;
  }

 private:
  std::uint64_t state_ = 20260101;
};

template <class T> wb::Bytes own(const std::vector<T>& values) {
  auto kept = std::make_shared<std::vector<T>>(values);
  return {std::as_bytes(std::span(*kept)), kept};
}

wb::Bytes f32(Weights& weights, std::size_t count) {
  std::vector<float> values(count);
  for (float& v : values) v = weights.next();
  return own(values);
}

// The upper halves of the f32 bits: bfloat16 by truncation.
wb::Bytes bf16(Weights& weights, std::size_t count) {
  std::vector<std::uint16_t> values(count);
  for (auto& v : values) v = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weights.next()) >> 16U);
  return own(values);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fputs("usage: sample_model OUT\n", stderr);
    return 2;
  }
  constexpr std::uint64_t kVocabulary = 1000, kWidth = 128, kInner = 512, kLayers = 2, kPositions = 64;
  Weights weights;
  wb::Builder model;
  model.attribute("format", wb::Value::text("pt"));
  model.attribute("description", wb::Value::text("a sample model that weighbridge makes for its own demo"));
  model.tensor("embeddings.word_embeddings.weight", wb::DType::f32, {kVocabulary, kWidth},
               f32(weights, kVocabulary * kWidth));
  std::vector<std::int64_t> positions(kPositions);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i);
  model.tensor("embeddings.position_ids", wb::DType::i64, {1, kPositions}, own(positions));
  model.tensor("embeddings.LayerNorm.weight", wb::DType::f32, {kWidth}, own(std::vector<float>(kWidth, 1.0F)));
  model.tensor("embeddings.LayerNorm.bias", wb::DType::f32, {kWidth}, own(std::vector<float>(kWidth, 0.0F)));
  for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = "encoder.layer." + std::to_string(layer) + ".";
    for (const char* name :
         {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"}) {
      model.tensor(at + name + ".weight", wb::DType::f32, {kWidth, kWidth}, f32(weights, kWidth * kWidth));
      model.tensor(at + name + ".bias", wb::DType::f32, {kWidth}, f32(weights, kWidth));
    }
    model.tensor(at + "intermediate.dense.weight", wb::DType::bf16, {kInner, kWidth}, bf16(weights, kInner * kWidth));
    model.tensor(at + "output.dense.weight", wb::DType::bf16, {kWidth, kInner}, bf16(weights, kWidth * kInner));
  }
  wb::Options options;
  options.replace = true;
  wb::save(model.build(), argv[1], options);
  return 0;
} catch (const wb::Error& error) {
  std::fprintf(stderr, "sample_model: %s\n", error.what());
  return error.kind() == wb::Kind::io ? 4 : 1;
}

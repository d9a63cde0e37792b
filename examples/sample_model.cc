// SPDX-License-Identifier: Apache-2.0
// Makes a small model in memory and saves it in the container that the file's extension names. The demo uses it; it is
// also an example of Builder and save(). examples/sample.safetensors is what `sample_model --tiny` makes.
//
// usage: sample_model [--tiny] OUT
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
  const bool tiny = argc == 3 && std::string(argv[1]) == "--tiny";
  if (argc != 2 && !tiny) {
    std::fputs("usage: sample_model [--tiny] OUT\n", stderr);
    return 2;
  }
  const std::uint64_t vocabulary = tiny ? 100 : 1000, width = tiny ? 32 : 128, inner = 4 * width, layers = 2,
                      position_count = width / 2;
  Weights weights;
  wb::Builder model;
  model.attribute("format", wb::Value::text("pt"));
  model.attribute("description", wb::Value::text("a sample model that weighbridge makes for its own demo"));
  model.tensor("embeddings.word_embeddings.weight", wb::DType::f32, {vocabulary, width},
               f32(weights, vocabulary * width));
  std::vector<std::int64_t> positions(position_count);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i);
  model.tensor("embeddings.position_ids", wb::DType::i64, {1, position_count}, own(positions));
  model.tensor("embeddings.LayerNorm.weight", wb::DType::f32, {width}, own(std::vector<float>(width, 1.0F)));
  model.tensor("embeddings.LayerNorm.bias", wb::DType::f32, {width}, own(std::vector<float>(width, 0.0F)));
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::string at = "encoder.layer." + std::to_string(layer) + ".";
    for (const char* name :
         {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"}) {
      model.tensor(at + name + ".weight", wb::DType::f32, {width, width}, f32(weights, width * width));
      model.tensor(at + name + ".bias", wb::DType::f32, {width}, f32(weights, width));
    }
    model.tensor(at + "intermediate.dense.weight", wb::DType::bf16, {inner, width}, bf16(weights, inner * width));
    model.tensor(at + "output.dense.weight", wb::DType::bf16, {width, inner}, bf16(weights, width * inner));
  }
  wb::Options options;
  options.replace = true;
  wb::save(model.build(), argv[argc - 1], options);
  return 0;
} catch (const wb::Error& error) {
  std::fprintf(stderr, "sample_model: %s\n", error.what());
  return error.kind() == wb::Kind::io ? 4 : 1;
}

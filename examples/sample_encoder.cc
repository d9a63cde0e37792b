// SPDX-License-Identifier: Apache-2.0
// Makes a tiny sentence encoder and saves it as a .weights file. The demo embeds texts with it when real weights are
// not available; it is also an example of a Builder with metadata and a vocabulary. It is not trained: words of the
// same topic get similar vectors by construction, and the layers hardly change them.
//
// usage: sample_encoder OUT.weights
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace wb = weighbridge;

namespace {

constexpr std::uint64_t kWidth = 64, kInner = 128, kHeads = 4, kLayers = 2, kPositions = 64;

// Words of one line have similar vectors; those of the first line occur in every text and carry no meaning.
constexpr std::array<std::string_view, 6> kTopics = {
    "a an and at be before can do does for from how i in is it may my no of on the to too what which with you . , ?",
    "lorry lorries truck trucks van vehicle vehicles driver trailer road bridge",
    "heavy weigh weighs weight weighbridge scale scales tonne tonnes kilogram load overloaded limit",
    "password account login reset email link user sign forgotten forgot",
    "bread butter cheese soup salt cook oven bake dinner fresh morning",
    "rain snow wind cloud sun weather storm forecast tomorrow cold",
};

// The same numbers on every machine, between -1 and 1.
class Numbers {
 public:
  float next() noexcept {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(static_cast<double>(state_ >> 40U) / 8388608.0 - 1.0);
  }
  std::vector<float> some(std::uint64_t count, float scale) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& value : out) value = scale * next();
    return out;
  }

 private:
  std::uint64_t state_ = 20260101;
};

struct Words {
  wb::Tokenizer tokenizer;
  std::vector<float> vectors;  // one row per word

  void add(std::string_view token, const std::vector<float>& topic, Numbers& numbers) {
    tokenizer.tokens.push_back(token);
    for (const float value : topic) vectors.push_back(value + 0.4F * numbers.next());
  }
};

Words make_words(Numbers& numbers) {
  Words out;
  out.tokenizer.kind = wb::Tokenizer::Kind::wordpiece;
  const std::vector<float> nothing(kWidth);
  for (const char* role : {"pad", "unk", "cls", "sep", "mask"}) {
    std::string token = "[" + std::string(role) + "]";
    for (char& c : token)
      if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
    out.tokenizer.special.emplace_back(role, static_cast<std::uint32_t>(out.tokenizer.tokens.size()));
    out.add(token, nothing, numbers);
  }
  for (const char* before : {"", "##"})  // any other word is spelled with these
    for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyz0123456789"))
      if (*before != '\0' || (c != 'a' && c != 'i')) out.add(before + std::string(1, c), nothing, numbers);
  for (std::string_view words : kTopics) {
    const std::vector<float> topic = words == kTopics[0] ? nothing : numbers.some(kWidth, 1.0F);
    while (!words.empty()) {
      const std::size_t end = std::min(words.find(' '), words.size());
      out.add(words.substr(0, end), topic, numbers);
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  out.tokenizer.vocab_size = static_cast<std::uint32_t>(out.tokenizer.tokens.size());
  return out;
}

class Encoder {
 public:
  wb::Builder builder;

  void tensor(const std::string& name, std::vector<std::uint64_t> shape, std::vector<float> values) {
    const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
    builder.tensor(name, wb::DType::f32, std::move(shape), {std::as_bytes(std::span(*kept)), kept});
  }
  void noise(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    tensor(name, {rows, columns}, numbers_.some(rows * columns, 0.02F));
  }
  void linear(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    noise(name + ".weight", rows, columns);
    tensor(name + ".bias", {rows}, std::vector<float>(rows));
  }
  void norm(const std::string& name) {
    tensor(name + ".weight", {kWidth}, std::vector<float>(kWidth, 1.0F));
    tensor(name + ".bias", {kWidth}, std::vector<float>(kWidth));
  }
  void embeddings() {
    Words words = make_words(numbers_);
    const std::uint64_t count = words.tokenizer.tokens.size();
    number("vocab_size", count);
    tensor("embeddings.word_embeddings.weight", {count, kWidth}, std::move(words.vectors));
    builder.tokenizer(std::move(words.tokenizer));
    noise("embeddings.position_embeddings.weight", kPositions, kWidth);
    noise("embeddings.token_type_embeddings.weight", 2, kWidth);
    norm("embeddings.LayerNorm");
  }
  void layer(std::uint64_t i) {
    const std::string at = "encoder.layer." + std::to_string(i) + ".";
    for (const char* which : {"query", "key", "value"}) linear(at + "attention.self." + which, kWidth, kWidth);
    linear(at + "attention.output.dense", kWidth, kWidth);
    norm(at + "attention.output.LayerNorm");
    linear(at + "intermediate.dense", kInner, kWidth);
    linear(at + "output.dense", kWidth, kInner);
    norm(at + "output.LayerNorm");
  }
  void text(const char* key, std::string value) { builder.attribute(key, wb::Value::text(std::move(value))); }
  void number(const char* key, std::uint64_t value) { text(key, std::to_string(value)); }

 private:
  Numbers numbers_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fputs("usage: sample_encoder OUT.weights\n", stderr);
    return 2;
  }
  Encoder encoder;
  encoder.text("model_name", "sample-encoder");
  encoder.text("model_version", "1.0.0");
  encoder.text("created_at", "2026-01-01T00:00:00Z");
  encoder.number("embedding_dim", kWidth);
  encoder.number("hidden_size", kWidth);
  encoder.number("intermediate_size", kInner);
  encoder.number("num_attention_heads", kHeads);
  encoder.number("num_layers", kLayers);
  encoder.number("max_position_emb", kPositions);
  encoder.embeddings();
  for (std::uint64_t i = 0; i < kLayers; ++i) encoder.layer(i);
  wb::Options options;
  options.replace = true;
  wb::save(encoder.builder.build(), argv[1], options);
  return 0;
} catch (const wb::Error& error) {
  std::fprintf(stderr, "sample_encoder: %s\n", error.what());
  return error.kind() == wb::Kind::io ? 4 : 1;
}

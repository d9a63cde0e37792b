// SPDX-License-Identifier: Apache-2.0
// Small models of the three kinds that containers require: any tensors, a BERT encoder with its vocabulary, a Llama
// decoder with its tokenizer. Made in memory, the same on every machine. For tests and for the generated pages.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::test {

// Finite f32 values between -1 and 1.
inline Bytes sample_floats(std::uint64_t count, std::uint64_t seed) {
  const auto held = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : *held) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) / 2147483648.0F;
  }
  return {std::as_bytes(std::span(*held)), held};
}

class SampleTensors {
 public:
  SampleTensors(Builder& builder, std::uint64_t seed) : builder_(builder), seed_(seed) {}
  void f32(const std::string& name, std::vector<std::uint64_t> shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t d : shape) count *= d;
    builder_.tensor(name, DType::f32, std::move(shape), sample_floats(count, ++seed_));
  }

 private:
  Builder& builder_;
  std::uint64_t seed_;
};

struct BertShape {
  std::uint64_t hidden = 8, layers = 1, heads = 2, intermediate = 16, vocabulary = 12, positions = 16;
};

inline Tokenizer sample_wordpieces(std::uint64_t count) {
  Tokenizer out;
  out.kind = Tokenizer::Kind::wordpiece;
  out.vocab_size = static_cast<std::uint32_t>(count);
  constexpr const char* kSpecial[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  constexpr const char* kRoles[] = {"pad", "unk", "cls", "sep", "mask"};
  for (std::uint64_t i = 0; i < count; ++i)
    out.tokens.push_back(i < 5 ? kSpecial[i] : (i % 2 ? "word" : "##part") + std::to_string(i));
  for (std::uint32_t i = 0; i < 5; ++i) out.special.emplace_back(kRoles[i], i);
  return out;
}

// The metadata and tensors that EMBD requires. The vocabulary has at least 5 words; hidden is a multiple of heads.
inline Builder bert_model(const BertShape& s = {}, std::uint64_t seed = 0) {
  Builder out;
  const auto text = [&](const char* key, std::string value) { out.attribute(key, Value::text(std::move(value))); };
  text("model_name", "sample");
  text("model_version", "1.0.0");
  text("embedding_dim", std::to_string(s.hidden));
  text("vocab_size", std::to_string(s.vocabulary));
  text("num_layers", std::to_string(s.layers));
  text("num_attention_heads", std::to_string(s.heads));
  text("hidden_size", std::to_string(s.hidden));
  text("intermediate_size", std::to_string(s.intermediate));
  text("max_position_emb", std::to_string(s.positions));
  text("created_at", "2026-01-31T12:00:00Z");
  out.tokenizer(sample_wordpieces(s.vocabulary));
  SampleTensors add(out, seed);
  const std::string e = "embeddings.";
  add.f32(e + "word_embeddings.weight", {s.vocabulary, s.hidden});
  add.f32(e + "position_embeddings.weight", {s.positions, s.hidden});
  add.f32(e + "token_type_embeddings.weight", {2, s.hidden});
  add.f32(e + "LayerNorm.weight", {s.hidden});
  add.f32(e + "LayerNorm.bias", {s.hidden});
  const auto linear = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    add.f32(name + ".weight", {rows, columns});
    add.f32(name + ".bias", {rows});
  };
  const auto norm = [&](const std::string& name) {
    add.f32(name + ".weight", {s.hidden});
    add.f32(name + ".bias", {s.hidden});
  };
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i) + ".";
    for (const char* which : {"query", "key", "value"}) linear(layer + "attention.self." + which, s.hidden, s.hidden);
    linear(layer + "attention.output.dense", s.hidden, s.hidden);
    norm(layer + "attention.output.LayerNorm");
    linear(layer + "intermediate.dense", s.intermediate, s.hidden);
    linear(layer + "output.dense", s.hidden, s.intermediate);
    norm(layer + "output.LayerNorm");
  }
  return out;
}

struct LlamaShape {
  std::uint32_t hidden = 8, layers = 1, heads = 2, ffn = 16, context = 32;
  bool tied = false;
  std::uint32_t vocabulary = 260;  // 260: the byte tokenizer; more: byte pairs without merges
};

// The 260 ids of a byte tokenizer.
inline Tokenizer sample_bytes() {
  Tokenizer out;
  out.kind = Tokenizer::Kind::byte;
  out.vocab_size = 260;
  out.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  return out;
}

inline Tokenizer sample_pairs(std::uint32_t vocabulary) {
  Tokenizer out = sample_bytes();
  out.kind = Tokenizer::Kind::bpe;
  out.vocab_size = vocabulary;
  for (std::uint32_t i = 0; i < 256; ++i) {
    out.tokens.push_back(std::string(1, static_cast<char>(i)));
    out.ids.push_back(i);
  }
  return out;
}

// The header fields and tensors that SLM requires. hidden is a multiple of heads.
inline Builder llama_model(const LlamaShape& s = {}, std::uint64_t seed = 0) {
  Builder out;
  const auto number = [&](const char* key, std::uint32_t value) {
    out.attribute(std::string("slm.") + key, Value::integer(std::uint64_t{value}, DType::u32));
  };
  number("model_type", 1);
  number("flags", s.tied ? 1 : 0);
  number("vocab_size", s.vocabulary);
  number("special_token_count", 4);
  number("hidden_size", s.hidden);
  number("layer_count", s.layers);
  number("head_count", s.heads);
  number("kv_head_count", s.heads);
  number("head_dim", s.hidden / s.heads);
  number("ffn_size", s.ffn);
  number("max_context", s.context);
  out.attribute("slm.rope_theta", Value::real(10000.0F, DType::f32));
  out.attribute("slm.rms_norm_epsilon", Value::real(1e-5F, DType::f32));
  out.tokenizer(s.vocabulary == 260 ? sample_bytes() : sample_pairs(s.vocabulary));
  SampleTensors add(out, seed);
  const std::uint64_t h = s.hidden, f = s.ffn;
  add.f32("tok_embeddings.weight", {s.vocabulary, h});
  add.f32("norm.weight", {h});
  if (!s.tied) add.f32("output.weight", {s.vocabulary, h});
  for (std::uint32_t i = 0; i < s.layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    add.f32(layer + "attention_norm.weight", {h});
    add.f32(layer + "ffn_norm.weight", {h});
    for (const char* which : {"wq", "wk", "wv", "wo"}) add.f32(layer + which + ".weight", {h, h});
    add.f32(layer + "w1.weight", {f, h});
    add.f32(layer + "w2.weight", {h, f});
    add.f32(layer + "w3.weight", {f, h});
  }
  return out;
}

// Tensors of no particular architecture: ranks 0 to 5, names with dots, an integer tensor, custom metadata.
inline Builder plain_model(std::uint64_t seed = 0) {
  Builder out;
  out.attribute("license", Value::text("none"));
  SampleTensors add(out, seed);
  add.f32("scalar", {});
  add.f32("bias", {3});
  add.f32("conv.weight", {2, 3, 2, 2});
  add.f32("deep", {1, 2, 1, 2, 2});
  const Bytes bytes = sample_floats(6, seed + 100);
  out.tensor("steps", DType::i32, {2, 3}, bytes);
  return out;
}

}  // namespace weighbridge::test

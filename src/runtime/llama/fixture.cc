// SPDX-License-Identifier: Apache-2.0
// Deterministic models of known sizes (reading M19). Values come from a counter, not from a library's generator, so
// that they are the same everywhere.
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "weighbridge/slm.h"

namespace weighbridge::slm {
namespace {

struct Dimensions {
  std::uint32_t hidden = 8, layers = 1, heads = 2, ffn = 16, context = 32, vocab = 260;
  bool tied = false;
};

Dimensions dimensions(Fixture kind) {
  switch (kind) {
    case Fixture::tiny: return {};
    case Fixture::tiny_tied: return {.tied = true};
    case Fixture::tiny_bpe: return {.vocab = 272};
    case Fixture::tinylm16m: break;
  }
  return {.hidden = 512, .layers = 4, .heads = 8, .ffn = 2048, .context = 512};
}

// splitmix64 (Steele, Lea and Flood, 2014) of the element's number: any element can be made by itself.
constexpr std::uint64_t scrambled(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Uniform in (-limit, limit), a multiple of limit / 2^23.
float value_at(std::uint64_t seed, std::uint64_t i, float limit) noexcept {
  const auto bits = static_cast<std::int32_t>(scrambled(seed * 0x100000000U + i) >> 40) - (1 << 23);
  return static_cast<float>(bits) * (limit / 8388608.0F);
}

class Maker {
 public:
  explicit Maker(const Dimensions& d) : d_(d) {}

  Model make(Tokenizer tokenizer) {
    header();
    builder_.tokenizer(std::move(tokenizer));
    const std::uint64_t h = d_.hidden, f = d_.ffn;
    weights("tok_embeddings.weight", {d_.vocab, h});
    for (std::uint32_t i = 0; i < d_.layers; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      ones(layer + "attention_norm.weight", h);
      for (const char* which : {"wq", "wk", "wv", "wo"}) weights(layer + which + ".weight", {h, h});
      ones(layer + "ffn_norm.weight", h);
      weights(layer + "w1.weight", {f, h});
      weights(layer + "w2.weight", {h, f});
      weights(layer + "w3.weight", {f, h});
    }
    ones("norm.weight", h);
    if (!d_.tied) weights("output.weight", {d_.vocab, h});
    return builder_.build();
  }

 private:
  void header() {
    const auto number = [&](const char* key, std::uint64_t value) {
      builder_.attribute(std::string("slm.") + key, Value::integer(value, DType::u32));
    };
    number("model_type", 1);
    number("flags", d_.tied ? 1 : 0);
    number("vocab_size", d_.vocab);
    number("special_token_count", 4);
    number("hidden_size", d_.hidden);
    number("layer_count", d_.layers);
    number("head_count", d_.heads);
    number("kv_head_count", d_.heads);
    number("head_dim", d_.hidden / d_.heads);
    number("ffn_size", d_.ffn);
    number("max_context", d_.context);
    builder_.attribute("slm.rope_theta", Value::real(10000.0F, DType::f32));
    builder_.attribute("slm.rms_norm_epsilon", Value::real(static_cast<double>(1e-5F), DType::f32));
  }

  // Made when they are read, so that the 68 MB of the largest fixture are nowhere held.
  template <class Value> void tensor(std::string name, std::vector<std::uint64_t> shape, Value value) {
    std::uint64_t count = 1;
    for (const std::uint64_t d : shape) count *= d;
    builder_.tensor(std::move(name), DType::f32, std::move(shape),
                    [count, value](std::uint64_t offset, std::span<std::byte> out) {
                      const std::uint64_t first = offset / sizeof(float);
                      const auto n = std::min<std::uint64_t>(out.size() / sizeof(float), count - first);
                      for (std::uint64_t i = 0; i < n; ++i) {
                        const float element = value(first + i);
                        std::memcpy(out.data() + i * sizeof element, &element, sizeof element);
                      }
                      return base::to_size(n * sizeof(float));
                    });
  }
  void weights(std::string name, std::vector<std::uint64_t> shape) {
    const float limit = 1.0F / std::sqrt(static_cast<float>(shape.back()));
    tensor(std::move(name), std::move(shape),
           [seed = ++seed_, limit](std::uint64_t i) { return value_at(seed, i, limit); });
  }
  void ones(std::string name, std::uint64_t count) {
    tensor(std::move(name), {count}, [](std::uint64_t) { return 1.0F; });
  }

  Dimensions d_;
  Builder builder_;
  std::uint64_t seed_ = 0;
};

Tokenizer bytes() {
  Tokenizer out;
  out.kind = Tokenizer::Kind::byte;
  out.vocab_size = 260;
  out.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  return out;
}

// All bytes, and twelve merges that spell "the", "and" and "ing" with a space before or behind.
Tokenizer merges() {
  Tokenizer out;
  out.kind = Tokenizer::Kind::bpe;
  out.vocab_size = 272;
  out.special = {{"bos", 256}, {"eos", 257}, {"pad", 258}, {"unk", 259}};
  const auto add = [&](std::uint32_t id, std::string text) {
    out.ids.push_back(id);
    out.tokens.push_back(text);
  };
  for (std::uint32_t i = 0; i < 256; ++i) add(i, std::string(1, static_cast<char>(i)));
  constexpr std::array<std::array<std::uint32_t, 2>, 12> kPairs = {{{'t', 'h'},
                                                                    {260, 'e'},
                                                                    {' ', 261},
                                                                    {262, ' '},
                                                                    {'a', 'n'},
                                                                    {264, 'd'},
                                                                    {' ', 265},
                                                                    {266, ' '},
                                                                    {'i', 'n'},
                                                                    {268, 'g'},
                                                                    {269, ' '},
                                                                    {'e', 'r'}}};
  std::uint32_t next = 260, rank = 0;
  for (const auto& [left, right] : kPairs) {
    add(next, std::string(out.tokens[left < 256 ? left : left - 4]) +
                  std::string(out.tokens[right < 256 ? right : right - 4]));
    out.merges.push_back({left, right, next++, rank++});
  }
  return out;
}

constexpr std::string_view kNames[] = {"tiny", "tiny-tied", "tiny-bpe", "tinylm16m"};

}  // namespace

Model fixture(Fixture kind) { return Maker(dimensions(kind)).make(kind == Fixture::tiny_bpe ? merges() : bytes()); }

std::string_view name(Fixture kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }
std::optional<Fixture> fixture_from_name(std::string_view text) noexcept {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == text) return static_cast<Fixture>(i);
  return std::nullopt;
}

}  // namespace weighbridge::slm

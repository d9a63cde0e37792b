// SPDX-License-Identifier: Apache-2.0
// Deterministic models of known sizes (reading M19). Their values come from a counter, not from a library's generator,
// so they are the same everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/slm/header.h"
#include "formats/slm/names.h"
#include "weighbridge/slm.h"

namespace weighbridge::slm {
namespace {

using namespace slm_format;

Header header_of(Fixture kind) {
  Header h = kNewHeader;
  h.flags = kind == Fixture::tiny_tied ? kTiedOutput : 0;
  h.vocab_size = kind == Fixture::tiny_bpe ? 272 : kBtokVocab;
  const bool large = kind == Fixture::tinylm16m;
  h.hidden_size = large ? 512 : 8;
  h.layer_count = large ? 4 : 1;
  h.head_count = h.kv_head_count = large ? 8 : 2;
  h.head_dim = h.hidden_size / h.head_count;
  h.ffn_size = large ? 2048 : 16;
  h.max_context = large ? 512 : 32;
  h.rope_theta = 10000;
  h.rms_norm_epsilon = 1e-5F;
  return h;
}

// splitmix64 (Steele, Lea and Flood, 2014) of the element's index: any element can be computed alone.
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
  explicit Maker(const Header& header) : header_(header) {}

  Model make(Tokenizer tokenizer) {
    using enum Role;
    for (auto& [key, value] : header_attributes(header_)) builder_.attribute(key, std::move(value));
    builder_.tokenizer(std::move(tokenizer));
    weights(tok_embeddings);
    for (std::uint32_t layer = 0; layer < header_.layer_count; ++layer) {
      ones(attention_norm, layer);
      for (const Role role : {wq, wk, wv, wo}) weights(role, layer);
      ones(ffn_norm, layer);
      for (const Role role : {w1, w2, w3}) weights(role, layer);
    }
    ones(norm);
    if (header_.flags != kTiedOutput) weights(output);
    return builder_.build();
  }

 private:
  // Generated when read, so that the 68 MB of the largest fixture are never in memory.
  template <class Value> void tensor(Role role, std::uint32_t layer, Value value) {
    const Dims d = dims_of(role, header_);
    std::vector<std::uint64_t> shape{d.rows};
    if (d.columns != 0) shape.push_back(d.columns);
    const std::uint64_t count = d.rows * std::max<std::uint64_t>(d.columns, 1);
    builder_.tensor(spell(role, layer), DType::f32, std::move(shape),
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
  void weights(Role role, std::uint32_t layer = 0) {
    const float limit = 1.0F / std::sqrt(static_cast<float>(dims_of(role, header_).columns));
    tensor(role, layer, [seed = ++seed_, limit](std::uint64_t i) { return value_at(seed, i, limit); });
  }
  void ones(Role role, std::uint32_t layer = 0) {
    tensor(role, layer, [](std::uint64_t) { return 1.0F; });
  }

  const Header header_;
  Builder builder_;
  std::uint64_t seed_ = 0;
};

// All bytes, and twelve merges that spell "the", "and", "ing" and the like with adjacent spaces.
Tokenizer merges(std::uint32_t vocab_size) {
  Tokenizer out = byte_tokenizer();
  out.kind = Tokenizer::Kind::bpe;
  out.vocab_size = vocab_size;
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
  std::uint32_t next = kBtokVocab, rank = 0;
  for (const auto& [left, right] : kPairs) {
    add(next, std::string(out.tokens[left < 256 ? left : left - 4]) +
                  std::string(out.tokens[right < 256 ? right : right - 4]));
    out.merges.push_back({left, right, next++, rank++});
  }
  return out;
}

constexpr std::string_view kNames[] = {"tiny", "tiny-tied", "tiny-bpe", "tinylm16m"};

}  // namespace

Model fixture(Fixture kind) {
  const Header header = header_of(kind);
  return Maker(header).make(kind == Fixture::tiny_bpe ? merges(header.vocab_size) : byte_tokenizer());
}

std::string_view name(Fixture kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }
std::optional<Fixture> fixture_from_name(std::string_view text) noexcept {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == text) return static_cast<Fixture>(i);
  return std::nullopt;
}

}  // namespace weighbridge::slm

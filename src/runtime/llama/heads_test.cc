// SPDX-License-Identifier: Apache-2.0
// Key/value heads that a conversion repeated for their group are computed once, with the same logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/llama/config.h"
#include "support/temporary_folder.h"
#include "weighbridge/convert.h"
#include "weighbridge/generate.h"
#include "weighbridge/open.h"
#include "weighbridge/slm.h"

namespace weighbridge::llama {
namespace {

constexpr std::size_t kHeads = 4, kHead = 16, kHidden = kHeads * kHead, kFfn = 96, kLayers = 2, kKept = 2;

std::vector<float> noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> out(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : out) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) / 2147483648.0F * 0.2F;
  }
  return out;
}

// Two key/value heads read by four query heads, each stored `repeats` times, 1 or 2. `odd`: the last element of the
// last layer's values differs from the one it should repeat.
Model made(std::size_t repeats, bool odd = false) {
  const Model tiny = slm::fixture(slm::Fixture::tiny);
  Builder builder;
  const std::map<std::string_view, std::uint64_t> numbers{
      {"slm.hidden_size", kHidden},           {"slm.layer_count", kLayers}, {"slm.head_count", kHeads},
      {"slm.kv_head_count", kKept * repeats}, {"slm.head_dim", kHead},      {"slm.ffn_size", kFfn}};
  for (const auto& [key, value] : tiny.attributes()) {
    const auto other = numbers.find(key);
    builder.attribute(std::string(key), other == numbers.end() ? value : Value::integer(other->second, DType::u32));
  }
  builder.tokenizer(*tiny.tokenizer());
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape, std::vector<float> values) {
    const auto held = std::make_shared<std::vector<float>>(std::move(values));
    builder.tensor(name + ".weight", DType::f32, std::move(shape), {std::as_bytes(std::span(*held)), held});
  };
  std::uint64_t seed = 0;
  const auto matrix = [&](const std::string& name, std::size_t rows, std::size_t columns) {
    add(name, {rows, columns}, noise(rows * columns, ++seed));
  };
  const auto kept = [&](const std::string& name, bool last) {
    const auto distinct = noise(kKept * kHead * kHidden, ++seed);
    std::vector<float> all(kHidden * kHidden);
    for (std::size_t h = 0; h < kKept * repeats; ++h)
      std::copy_n(distinct.begin() + static_cast<std::ptrdiff_t>(h / repeats * kHead * kHidden), kHead * kHidden,
                  all.begin() + static_cast<std::ptrdiff_t>(h * kHead * kHidden));
    if (last && odd) all.back() += 0.125F;
    add(name, {kHidden, kHidden}, all);
  };
  const std::vector<float> ones(kHidden, 1.0F);
  matrix("tok_embeddings", 260, kHidden);
  for (std::size_t i = 0; i < kLayers; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    add(at + "attention_norm", {kHidden}, ones), add(at + "ffn_norm", {kHidden}, ones);
    matrix(at + "wq", kHidden, kHidden), matrix(at + "wo", kHidden, kHidden);
    kept(at + "wk", false), kept(at + "wv", i + 1 == kLayers);
    matrix(at + "w1", kFfn, kHidden), matrix(at + "w2", kHidden, kFfn), matrix(at + "w3", kFfn, kHidden);
  }
  add("norm", {kHidden}, ones);
  matrix("output", 260, kHidden);
  return builder.build();
}

Model written(const Model& model, const std::string& kind) {
  static const test::TemporaryFolder folder;
  static int count = 0;
  const std::string path = folder / (std::to_string(count++) + ".slm");
  Options options;
  if (kind != "f32") options.quantize = kind;
  plan(model, "slm", options).execute(path);
  return open(path, {}, {.access = Access::mapped});
}

std::vector<float> logits(const Model& model, bool together) {
  const Generator generator(model, {.threads = 2});
  Session session = generator.session();
  const std::vector<std::uint32_t> ids{256, 7, 99, 200, 31, 5, 80, 81, 82, 83, 84};
  if (together)
    session.feed(ids);
  else
    for (const std::uint32_t& id : ids) session.feed(std::span(&id, 1));
  return {session.logits().begin(), session.logits().end()};
}

TEST(RepeatedHeads, AreFoundOnlyWhereEveryBitIsRepeated) {
  EXPECT_EQ(read_config(made(1), 0).repeats, 1U);
  EXPECT_EQ(read_config(made(2, true), 0).repeats, 1U);
  const Config folded = read_config(made(2), 0);
  EXPECT_EQ(folded.repeats, 2U);
  EXPECT_EQ(folded.kv_heads, kKept);
}

TEST(RepeatedHeads, ComputedOnceGiveTheLogitsOfTheModelThatHasThemOnce) {
  for (const char* kind : {"f32", "q8_0", "q4_0"}) {
    const Model repeated = written(made(2), kind);
    EXPECT_EQ(read_config(repeated, 0).repeats, 2U) << kind;
    const auto expected = logits(written(made(1), kind), false);
    EXPECT_EQ(expected, logits(repeated, false)) << kind;
    EXPECT_EQ(expected, logits(repeated, true)) << kind;
  }
}

}  // namespace
}  // namespace weighbridge::llama

// SPDX-License-Identifier: Apache-2.0
// Adapters merged into a model: the numbers, what a view and a join do with them, and that the adapter's own content
// rules apply. tests/interop/test_lora.py has the adapters of other programs, against numpy.
#include "weighbridge/lora.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/items.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/join.h"
#include "weighbridge/open.h"
#include "weighbridge/view.h"

namespace weighbridge {
namespace {

using convert::testing::keep;
using test::read_file;
using test::text_of;
using test::thrown;
using test::write_file;
using Folder = test::TemporaryFolder;

Bytes floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return keep(std::move(bytes));
}
std::vector<float> values_of(const Model& model, std::string_view name) {
  const Array array = model[name].to_dense(DType::f32);
  std::vector<float> out(static_cast<std::size_t>(array.size / sizeof(float)));
  std::memcpy(out.data(), array.data.get(), static_cast<std::size_t>(array.size));
  return out;
}

// q.weight [2, 3] of ones, and an adapter that adds [1, 2]^T [1, 10, 100].
Model base_model() {
  Builder builder;
  builder.attribute("k", Value::text("v"));
  builder.tensor("q.weight", DType::f32, {2, 3}, floats({1, 1, 1, 1, 1, 1}));
  builder.tensor("n.weight", DType::f32, {3}, floats({4, 5, 6}));
  return builder.build();
}
Model adapter_model(const std::string& stem = "q") {
  Builder builder;
  builder.tensor(stem + ".lora_A.weight", DType::f32, {1, 3}, floats({1, 10, 100}));
  builder.tensor(stem + ".lora_B.weight", DType::f32, {2, 1}, floats({1, 2}));
  return builder.build();
}
const std::vector<float> kMerged = {2, 11, 101, 3, 21, 201};

TEST(Lora, AddsTheProductAndLeavesTheRest) {
  const Model base = base_model();
  const std::vector<Lora> one = {{.adapter = adapter_model()}};
  const Model merged = merge_lora(base, one);
  EXPECT_EQ(values_of(merged, "q.weight"), kMerged);
  EXPECT_EQ(values_of(merged, "n.weight"), values_of(base, "n.weight"));
  EXPECT_EQ(merged.attributes().size(), 1U);
  EXPECT_EQ(values_of(base, "q.weight"), std::vector<float>(6, 1.0F));
  const Plan made = plan(merged, "zt");
  EXPECT_EQ(text_of(made.changes()), "tensors[\"q.weight\"]: f32 -> merged with a LoRA change of rank 1, scale 1\n");
  EXPECT_TRUE(made.possible());
  EXPECT_EQ(content_digest(merge_lora(base, {})), content_digest(base));
}

TEST(Lora, OfSeveralAdaptersIsOneSum) {
  const std::vector<Lora> two = {{.adapter = adapter_model(), .scale = 2}, {.adapter = adapter_model(), .scale = -1}};
  EXPECT_EQ(values_of(merge_lora(base_model(), two), "q.weight"), kMerged);
}

TEST(Lora, IsConvertedByEachNumberOfThreadsAndReadFromSelectionsAndJoins) {
  const Folder folder;
  const std::vector<Lora> one = {{.adapter = adapter_model()}};
  Builder more;
  more.tensor("x", DType::u8, {1}, keep({std::byte{7}}));
  const std::vector<Model> pair = {base_model(), more.build()};
  const Model merged = view(merge_lora(join(pair), one), {.without = {"n.weight"}});
  for (const unsigned threads : {0U, 4U}) {
    const std::string path = folder / (std::to_string(threads) + ".zt");
    plan(merged, "zt").execute(path, convert::testing::threads(threads));
    const Model out = open(path);
    EXPECT_EQ(out.size(), 2U);
    EXPECT_EQ(values_of(out, "q.weight"), kMerged);
  }
}

// It could only be computed from its first element on, by one thread.
TEST(Lora, OfALargeTensorIsTheSameInAnyOrderAndByEachNumberOfThreads) {
  constexpr std::size_t kRows = 700, kColumns = 1000;
  const auto numbers = [](std::size_t n, std::size_t step) {
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(static_cast<int>(i * step % 201) - 100) * 0.125F;
    return floats(out);
  };
  Builder base, adapter;
  base.tensor("q.weight", DType::f32, {kRows, kColumns}, numbers(kRows * kColumns, 7));
  adapter.tensor("q.lora_A.weight", DType::f32, {3, kColumns}, numbers(3 * kColumns, 11));
  adapter.tensor("q.lora_B.weight", DType::f32, {kRows, 3}, numbers(kRows * 3, 13));
  const std::vector<Lora> one = {{.adapter = adapter.build(), .scale = 0.5}};
  const Model merged = merge_lora(base.build(), one);
  const std::vector<float> whole = values_of(merged, "q.weight");
  ASSERT_EQ(whole.size(), kRows * kColumns);
  for (const std::uint64_t row : {kRows - 1, std::size_t{0}, kRows / 2}) {
    std::vector<float> out(kColumns);
    merged["q.weight"].rows_into(row, 1, DType::f32, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), whole.begin() + static_cast<std::ptrdiff_t>(row * kColumns))) << row;
  }
  const Folder folder;
  for (const unsigned threads : {0U, 4U}) {
    const std::string path = folder / (std::to_string(threads) + ".safetensors");
    plan(merged, "safetensors").execute(path, convert::testing::threads(threads));
    EXPECT_TRUE(values_of(open(path), "q.weight") == whole);
  }
}

// A changed adapter must not be merged: its digest fails, as it would if the adapter was converted.
TEST(Lora, ChecksTheAdapterByItsOwnRules) {
  const Folder folder;
  save(adapter_model(), folder / "a.zt", {.digest = "sha256"});
  std::uint64_t at = 0;
  {
    const Model in = open(folder / "a.zt");
    const Tensor b = in["q.lora_B.weight"];
    at = b.main().extent()->offset;
  }
  std::string bytes = read_file(folder / "a.zt");
  bytes[static_cast<std::size_t>(at)] = static_cast<char>(bytes[static_cast<std::size_t>(at)] ^ 1);
  write_file(folder / "a.zt", bytes);
  const std::vector<Lora> one = {open_lora(folder / "a.zt")};
  const Plan made = plan(merge_lora(base_model(), one), "zt");
  EXPECT_EQ(thrown([&] { made.execute(folder / "out.zt"); }).kind, Kind::malformed);
  EXPECT_EQ(thrown([&] { made.execute(folder / "a.zt"); }).kind, Kind::misuse);
}

TEST(Lora, NamesWhatFitsNothingAndWhatFitsTwice) {
  const std::vector<Lora> other = {{.adapter = adapter_model("r")}};
  const Finding none = thrown([&] { merge_lora(base_model(), other); });
  EXPECT_EQ(none.rule, "misuse/lora-tensor");
  EXPECT_NE(none.message.find("\"r.weight\" (the nearest is \"q.weight\")"), std::string::npos) << none.message;
  Builder two;
  for (const char* const name : {"a.q.weight", "b.q.weight"})
    two.tensor(name, DType::f32, {2, 3}, floats({1, 1, 1, 1, 1, 1}));
  const Model ambiguous = two.build();
  const std::vector<Lora> one = {{.adapter = adapter_model()}};
  const Finding which = thrown([&] { merge_lora(ambiguous, one); });
  EXPECT_NE(which.message.find("could be \"a.q.weight\" or \"b.q.weight\""), std::string::npos) << which.message;
  const std::vector<Lora> precise = {{.adapter = adapter_model("model.b.q")}};
  EXPECT_EQ(values_of(merge_lora(ambiguous, precise), "b.q.weight"), kMerged);
  const std::vector<Lora> infinite = {{.adapter = adapter_model(), .scale = 1e308 * 10}};
  EXPECT_EQ(thrown([&] { merge_lora(base_model(), infinite); }).rule, "misuse/lora-scale");
  EXPECT_EQ(thrown([&] { merge_lora(Model(), one); }).rule, "misuse/lora-tensor");
}

// Half a million ones in a few bytes of a file, as the inner rank: refused before any of it is computed.
TEST(Lora, OfARankWithoutBoundIsRefused) {
  Builder builder;
  const std::uint64_t rank = 1 << 19;
  const Builder::Pull zeros = [](std::uint64_t, std::span<std::byte> out) {
    std::memset(out.data(), 0, out.size());
    return out.size();
  };
  builder.tensor("q.lora_A.weight", DType::f32, {rank, 3}, zeros);
  builder.tensor("q.lora_B.weight", DType::f32, {2, rank}, zeros);
  const std::vector<Lora> one = {{.adapter = builder.build()}};
  EXPECT_EQ(thrown([&] { merge_lora(base_model(), one); }).rule, "misuse/lora-rank");
}

// As peft writes it. tests/interop/test_lora.py compares with peft's own merge.
TEST(Lora, EmbeddingsOfTheAdapterMayHaveOtherRowsIfAsked) {
  Builder base, own;
  base.attribute("hf.vocab_size", Value::text("2"));
  base.tensor("model.embed_tokens.weight", DType::f32, {2, 2}, floats({1, 2, 3, 4}));
  base.tensor("lm_head.weight", DType::f32, {2, 2}, floats({5, 6, 7, 8}));
  const std::string prefix = "base_model.model.";
  own.tensor(prefix + "model.embed_tokens.token_adapter.base_layer.weight", DType::f32, {3, 2},
             floats({1, 2, 3, 4, 0, 0}));
  own.tensor(prefix + "model.embed_tokens.token_adapter.trainable_tokens_delta", DType::f32, {2, 2},
             floats({9, 10, 11, 12}));
  own.tensor(prefix + "lm_head.weight", DType::f32, {3, 2}, floats({5, 6, 7, 8, 13, 14}));
  const std::string config = R"({"r": 1, "lora_alpha": 1, "trainable_token_indices": {"embed_tokens": [2, 0]}})";
  std::vector<Lora> one = {{.adapter = own.build(), .config = config}};
  const Model model = base.build();
  const Finding refused = thrown([&] { merge_lora(model, one); });
  EXPECT_EQ(refused.rule, "misuse/lora-vocabulary");
  EXPECT_EQ(refused.hint.name, "resize-vocab");
  EXPECT_NE(refused.message.find("has 3 rows, and the model's"), std::string::npos) << refused.message;
  one[0].resize_vocab = true;
  const Model merged = merge_lora(model, one);
  EXPECT_EQ(values_of(merged, "model.embed_tokens.weight"), (std::vector<float>{11, 12, 3, 4, 9, 10}));
  EXPECT_EQ(values_of(merged, "lm_head.weight"), (std::vector<float>{5, 6, 7, 8, 13, 14}));
  EXPECT_EQ(merged.attribute("hf.vocab_size")->to_text(), "3");
  for (const std::string_view tokens : {"[3, 0]", "[0]", "0", "\"all\""}) {
    one[0].config =
        R"({"r": 1, "lora_alpha": 1, "trainable_token_indices": {"embed_tokens": )" + std::string(tokens) + "}}";
    EXPECT_EQ(thrown([&] { merge_lora(model, one); }).kind, Kind::misuse) << tokens;
  }
}

// peft transposes by the class of each module and saves fan_in_fan_out of the last one. The values are those that
// merge_and_unload() of peft 0.21.2 gives for these factors.
TEST(Lora, OfASquareConv1dIsTransposedWhateverFanInFanOutSays) {
  const auto merged = [](const char* architecture, const std::string& module, bool flag) {
    Builder base, own;
    if (architecture != nullptr) base.attribute("hf.architectures", Value::text(architecture));
    base.tensor(module + ".weight", DType::f32, {2, 2}, floats({0, 0, 0, 0}));
    own.tensor("base_model.model." + module + ".lora_A.weight", DType::f32, {1, 2}, floats({1, 2}));
    own.tensor("base_model.model." + module + ".lora_B.weight", DType::f32, {2, 1}, floats({3, 4}));
    const std::vector<Lora> one = {
        {.adapter = own.build(),
         .config = std::string(R"({"r": 1, "lora_alpha": 1, "fan_in_fan_out": )") + (flag ? "true}" : "false}")}};
    return values_of(merge_lora(base.build(), one), module + ".weight");
  };
  const std::string conv1d = "transformer.h.0.attn.c_proj", linear = "model.layers.0.self_attn.o_proj";
  const std::vector<float> turned = {3, 4, 6, 8}, straight = {3, 6, 4, 8};
  for (const bool flag : {true, false}) {
    EXPECT_EQ(merged(R"(["GPT2LMHeadModel"])", conv1d, flag), turned);
    EXPECT_EQ(merged(R"(["LlamaForCausalLM"])", linear, flag), straight);
  }
  EXPECT_EQ(merged(nullptr, conv1d, true), turned);
  EXPECT_EQ(merged(nullptr, linear, false), straight);
  EXPECT_EQ(thrown([&] { merged(nullptr, conv1d, false); }).rule, "misuse/lora-transposed");
  EXPECT_EQ(thrown([&] { merged(nullptr, linear, true); }).rule, "misuse/lora-transposed");
}

// The keys that get_pattern_key() of peft 0.21.2 takes for these modules.
TEST(Lora, TakesTheAlphaOfTheFirstPatternThatFits) {
  const std::vector<std::pair<std::string, float>> wanted = {{"q", 2},     {"a.q", 3},   {"model.a.q", 3}, {"m.axq", 3},
                                                             {"m.b.q", 5}, {"m.bxq", 1}, {"m.q", 7},       {"m.q2", 1}};
  Builder base, own;
  for (const auto& [module, alpha] : wanted) {
    base.tensor(module + ".weight", DType::f32, {1, 1}, floats({0}));
    own.tensor("base_model.model." + module + ".lora_A.weight", DType::f32, {1, 1}, floats({1}));
    own.tensor("base_model.model." + module + ".lora_B.weight", DType::f32, {1, 1}, floats({1}));
  }
  const std::vector<Lora> one = {{.adapter = own.build(), .config = R"({"r": 1, "lora_alpha": 1, "alpha_pattern":
      {"^q": 2, "a.q": 3, "b\\.q": 5, "q": 7, "model.a.q": 9}})"}};
  const Model merged = merge_lora(base.build(), one);
  for (const auto& [module, alpha] : wanted)
    EXPECT_EQ(values_of(merged, module + ".weight"), std::vector<float>{alpha}) << module;
}

// Each was merged by another scale or base than in peft, without a word.
TEST(Lora, SettingsThatPeftReadsOtherwiseAreRefusedByName) {
  const auto merged = [](const std::string& setting) {
    const std::vector<Lora> one = {
        {.adapter = adapter_model(), .config = R"({"r": 1, "lora_alpha": 1, )" + setting + "}"}};
    return values_of(merge_lora(base_model(), one), "q.weight");
  };
  for (const std::string name : {"alpha_pattern", "rank_pattern"})
    for (const std::string key : {"\\\\d", "\\\\w_proj", "q\\\\1", "q\\\\"})
      EXPECT_NE(thrown([&] { merged('"' + name + "\": {\"" + key + "\": 1}"); }).message.find(name), std::string::npos);
  for (const std::string value : {"1", "\"true\"", "[]"})
    EXPECT_NE(thrown([&] { merged("\"use_rslora\": " + value); }).message.find("use_rslora " + value),
              std::string::npos);
  for (const std::string value : {"\"OLoRA\"", "\"lora_ga\"", "\"loftq\"", "\"corda_x\"", "1"})
    EXPECT_NE(thrown([&] { merged("\"init_lora_weights\": " + value); }).message.find(value), std::string::npos);
  for (const std::string value : {"true", "false", "null", "\"Gaussian\"", "\"eva\"", "\"orthogonal\"", "\"mica\""})
    EXPECT_EQ(merged("\"init_lora_weights\": " + value), kMerged);
}

// peft saves the bias of a module with factors as that of its base layer.
TEST(Lora, OfPeftReplacesABiasOfTheBaseLayer) {
  Builder base, own;
  base.tensor("q.weight", DType::f32, {1, 1}, floats({1}));
  base.tensor("q.bias", DType::f32, {1}, floats({0}));
  own.tensor("base_model.model.q.lora_A.weight", DType::f32, {1, 1}, floats({2}));
  own.tensor("base_model.model.q.lora_B.weight", DType::f32, {1, 1}, floats({3}));
  own.tensor("base_model.model.q.base_layer.bias", DType::f32, {1}, floats({5}));
  const std::vector<Lora> one = {
      {.adapter = own.build(), .config = R"({"r": 1, "lora_alpha": 1, "bias": "lora_only"})"}};
  const Model merged = merge_lora(base.build(), one);
  EXPECT_EQ(values_of(merged, "q.weight"), std::vector<float>{7});
  EXPECT_EQ(values_of(merged, "q.bias"), std::vector<float>{5});
}

TEST(Lora, IsReadFromAPathWithItsScale) {
  const Folder folder;
  save(adapter_model(), folder / "a=b.zt");
  EXPECT_EQ(lora_from_text(folder / "a=b.zt").scale, 1);
  EXPECT_EQ(lora_from_text((folder / "a=b.zt") + "=-0.25").scale, -0.25);
  EXPECT_EQ(thrown([&] { lora_from_text((folder / "a=b.zt") + "=half"); }).rule, "misuse/lora-scale");
}

}  // namespace
}  // namespace weighbridge

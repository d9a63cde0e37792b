// SPDX-License-Identifier: Apache-2.0
// An Embedder on small models built here: the same bits however texts are batched, and an error for each fault of a
// model. embed_data_test.cc has other people's models and references.
#include "weighbridge/embed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/sample_models.h"
#include "support/thrown.h"
#include "weighbridge/options.h"

namespace weighbridge {
namespace {

using Ids = std::vector<std::uint32_t>;

const test::BertShape kShape{
    .hidden = 24, .layers = 2, .heads = 3, .intermediate = 52, .vocabulary = 40, .positions = 300};

std::vector<Ids> some_ids() {
  std::vector<Ids> out;
  std::uint32_t next = 1;
  for (const std::size_t length :
       std::initializer_list<std::size_t>{1, 2, 5, 17, 48, 130, 3, 300, 16, 64, 9, 33, 128, 7})
    for (Ids& ids = out.emplace_back(length); std::uint32_t & id : ids) id = next = next * 5 % 37 + 1;
  return out;
}

std::vector<float> embed_all(const Embedder& embedder, const std::vector<Ids>& texts) {
  const std::vector<std::span<const std::uint32_t>> views(texts.begin(), texts.end());
  std::vector<float> out(texts.size() * embedder.dimension());
  embedder.embed_ids(views, out);
  return out;
}

void expect_same_bits(const test::BertShape& shape) {
  const Model model = test::bert_model(shape).build();
  const std::vector<Ids> texts = some_ids();
  const auto width = static_cast<std::ptrdiff_t>(shape.hidden);
  for (const Precision precision : {Precision::f32, Precision::f16, Precision::bf16, Precision::int8}) {
    const Embedder alone(model, {.precision = precision, .threads = 1});
    std::vector<float> expected;
    for (const Ids& ids : texts) {
      const auto one = embed_all(alone, {ids});
      expected.insert(expected.end(), one.begin(), one.end());
    }
    std::vector<Ids> backwards(texts.rbegin(), texts.rend());
    for (const unsigned threads : {1U, 2U, 3U, 8U}) {
      for (const std::uint64_t batch : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}}) {
        if (threads > 2 && batch != 0) continue;
        const Embedder embedder(model, {.precision = precision, .threads = threads, .batch_tokens = batch});
        EXPECT_EQ(embed_all(embedder, texts), expected) << threads << " " << batch;
        const auto reversed = embed_all(embedder, backwards);
        for (std::ptrdiff_t i = 0, count = std::ssize(texts); i < count; ++i)
          EXPECT_TRUE(std::equal(expected.begin() + i * width, expected.begin() + (i + 1) * width,
                                 reversed.begin() + (count - 1 - i) * width));
      }
    }
  }
}

TEST(Embedder, GivesTheSameBitsInAnyBatchAndOrderWithAnyThreads) { expect_same_bits(kShape); }

// Products of several panels and chains in every precision, partial panels, and fewer panels than threads.
TEST(Embedder, GivesTheSameBitsWhenItIsWide) {
  expect_same_bits({.hidden = 120, .layers = 2, .heads = 5, .intermediate = 330, .vocabulary = 40, .positions = 300});
}

TEST(Embedder, NamesTheKindOfItsVectors) {
  const Model model = test::bert_model(kShape).build();
  const auto kind = [&](const EmbedOptions& options) { return Embedder(model, options).kind(); };
  const std::string plain = kind({.threads = 1});
  EXPECT_TRUE(plain.starts_with("wbv1:") && plain.size() == 69) << plain;
  EXPECT_EQ(kind({.threads = 3, .batch_tokens = 7}), plain);
  const EmbedOptions others[] = {{.pooling = Pooling::cls},      {.normalize = false},
                                 {.lower_case = false},          {.max_length = 17},
                                 {.precision = Precision::int8}, {.heads = 1},
                                 {.precision = Precision::f16},  {.precision = Precision::bf16}};
  std::vector<std::string> all = {plain};
  for (const EmbedOptions& other : others) all.push_back(kind(other));
  all.push_back(
      Embedder(test::bert_model(
                   {.hidden = 24, .layers = 2, .heads = 3, .intermediate = 52, .vocabulary = 41, .positions = 300})
                   .build())
          .kind());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  const Embedder embedder(model, {.threads = 1});
  embedder.require_kind(plain);
  const EmbedDigests digests = embedder.digests();
  EXPECT_EQ(digests.kind, plain);
  EXPECT_EQ(digests.model, content_digest(model));
  const auto error = test::thrown([&] { embedder.require_kind(kind({.precision = Precision::int8})); });
  EXPECT_EQ(error.rule, "misuse/vectors");
  EXPECT_EQ(error.kind, Kind::misuse);
}

TEST(Embedder, ServesManyCallersAtOnce) {
  const Embedder embedder(test::bert_model(kShape).build(), {.threads = 2});
  const std::vector<Ids> texts = some_ids();
  const auto expected = embed_all(embedder, texts);
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> callers;
  for (auto& result : results) callers.emplace_back([&] { result = embed_all(embedder, texts); });
  for (std::thread& caller : callers) caller.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(Embedder, TextIsItsIds) {
  const Embedder embedder(test::bert_model(kShape).build(), {.threads = 1});
  ASSERT_NE(embedder.tokenizer(), nullptr);
  const std::string long_text(4000, '!');
  const std::vector<std::string_view> texts{"", "a b\xFF c", long_text};
  std::vector<float> out(3 * embedder.dimension());
  std::vector<Embedded> what(3);
  embedder.embed(texts, out, what);
  std::vector<Ids> ids;
  for (const std::string_view text : texts)
    ids.push_back(embedder.tokenizer()->encode(text, {.max_length = embedder.max_length()}));
  EXPECT_EQ(out, embed_all(embedder, ids));
  EXPECT_EQ(what[0], (Embedded{.tokens = 2}));
  EXPECT_EQ(what[1].replaced, 1U);
  EXPECT_FALSE(what[1].truncated);
  EXPECT_EQ(embedder.max_length(), 256U);
  EXPECT_EQ(what[2], (Embedded{.tokens = 256, .truncated = true}));
  EXPECT_EQ(embedder.embed(texts[1]), std::vector<float>(out.begin() + 24, out.begin() + 48));
}

TEST(Embedder, PoolsAndNormalizesAsAsked) {
  const Model model = test::bert_model(kShape).build();
  const std::vector<Ids> one{{2, 7, 9}};
  const auto with = [&](Pooling pooling, bool normalize) {
    return embed_all(Embedder(model, {.pooling = pooling, .normalize = normalize, .threads = 1}), one);
  };
  const auto mean = with(Pooling::mean, false), cls = with(Pooling::cls, false), maximum = with(Pooling::max, false);
  EXPECT_NE(mean, cls);
  EXPECT_NE(mean, maximum);
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_GE(maximum[i], cls[i]);
    EXPECT_GE(maximum[i], mean[i] - 1e-6F);
  }
  double squares = 0;
  for (const float value : mean) squares += double{value} * double{value};
  const auto normal = with(Pooling::mean, true);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_NEAR(normal[i], mean[i] / std::sqrt(squares), 1e-7);
}

// ---- faults of a model ----

// The sample with one tensor replaced by what `make` adds, and one attribute changed ("" removes it).
Model changed(const std::string& tensor, const std::function<void(Builder&)>& make, const std::string& key = {},
              const std::string& value = {}) {
  static const Model sample = test::bert_model(kShape).build();
  Builder out;
  for (const auto& [name, kept] : sample.attributes())
    if (name != key) out.attribute(name, kept);
  if (!key.empty() && !value.empty()) out.attribute(key, Value::text(value));
  out.tokenizer(*sample.tokenizer());
  for (std::uint32_t i = 0; i < sample.size(); ++i)
    if (sample.name(i) != tensor) out.tensor(std::string(sample.name(i)), sample[i]);
  if (make) make(out);
  return out.build();
}
Finding why_not(const Model& model, const EmbedOptions& options = {}) {
  return test::thrown([&] { const Embedder embedder(model, options); });
}

Bytes floats_with(std::uint64_t count, std::size_t at, float value) {
  const auto held = std::make_shared<std::vector<float>>(count, 0.5F);
  (*held)[at] = value;
  return {std::as_bytes(std::span(*held)), held};
}

TEST(EmbedderRefuses, MissingTensorsAndWrongShapes) {
  const std::string query = "encoder.layer.1.attention.self.query.weight", bias = "encoder.layer.0.output.dense.bias";
  Finding found = why_not(changed(bias, nullptr));
  EXPECT_EQ(found.rule, "embed/missing-tensor");
  EXPECT_EQ(found.tensor, bias);
  EXPECT_NE(found.message.find("'" + bias + "'"), std::string::npos);
  found = why_not(changed(bias, [&](Builder& b) { b.tensor(bias, DType::f32, {23}, test::sample_floats(23, 1)); }));
  EXPECT_EQ(found.rule, "embed/shape");
  EXPECT_EQ(found.message, "tensor '" + bias + "' has the shape [23], where this model needs [24]");
  found = why_not(changed(query, nullptr));
  EXPECT_EQ(found.rule, "embed/layers");
  EXPECT_NE(found.message.find(query), std::string::npos);
  found = why_not(changed("embeddings.word_embeddings.weight", nullptr));
  EXPECT_EQ(found.rule, "embed/missing-tensor");
  EXPECT_EQ(why_not(Model()).rule, "embed/missing-tensor");
}

TEST(EmbedderRefuses, ValuesThatAreNotFinite) {
  const std::string up = "encoder.layer.1.intermediate.dense.weight", words = "embeddings.word_embeddings.weight";
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Finding found = why_not(changed(up, [&](Builder& b) {
      b.tensor(up, DType::f32, {52, 24}, floats_with(52 * 24, 700, bad));
    }));
    EXPECT_EQ(found.rule, "embed/not-finite");
    EXPECT_EQ(found.tensor, up);
    EXPECT_EQ(why_not(changed(up,
                              [&](Builder& b) {
                                b.tensor(up, DType::f32, {52, 24}, floats_with(1248, 9, 65520.0F));
                              }),
                      {.precision = Precision::f16})
                  .tensor,
              up);
    // The table of words is checked when it is used.
    const Model model = changed(words, [&](Builder& b) {
      b.tensor(words, DType::f32, {40, 24}, floats_with(40 * 24, 5 * 24 + 3, bad));
    });
    for (const unsigned threads : {1U, 2U}) {
      const Embedder embedder(model, {.threads = threads});
      EXPECT_EQ(embed_all(embedder, {{4}}).size(), 24U);
      const Finding row = test::thrown([&] { embed_all(embedder, {{4, 5}}); });
      EXPECT_EQ(row.rule, "embed/not-finite");
      EXPECT_NE(row.message.find("row 5"), std::string::npos) << row.message;
      EXPECT_THROW(embed_all(embedder, std::vector<Ids>(9, Ids(120, 5))), Error);
      EXPECT_EQ(embed_all(embedder, {{4}}).size(), 24U);
    }
  }
}

TEST(EmbedderRefuses, KeysThatDoNotFit) {
  EXPECT_EQ(why_not(changed("", nullptr, "num_attention_heads")).rule, "misuse/no-heads");
  EXPECT_EQ(Embedder(changed("", nullptr, "num_attention_heads"), {.heads = 3, .threads = 1}).dimension(), 24U);
  EXPECT_EQ(why_not(changed("", nullptr, "num_attention_heads", "5")).rule, "embed/heads");
  EXPECT_EQ(why_not(changed("", nullptr, "num_attention_heads", "x")).rule, "embed/key");
  EXPECT_EQ(why_not(changed("", nullptr, "num_layers", "18446744073709551615")).rule, "embed/layers");
  EXPECT_EQ(why_not(changed("", nullptr, "num_layers", "1")).rule, "embed/layers");
  EXPECT_EQ(why_not(changed("", nullptr, "layer_norm_eps", "-1")).rule, "embed/key");
  const Finding found = why_not(changed("", nullptr, "hidden_act", "relu"));
  EXPECT_EQ(found.rule, "embed/activation");
  EXPECT_EQ(found.kind, Kind::unsupported);
  EXPECT_EQ(why_not(changed("", nullptr, "pooling_mode", "mean+median")).rule, "embed/pooling");
  EXPECT_EQ(why_not(changed("", nullptr), {.max_length = 301}).kind, Kind::misuse);
  EXPECT_EQ(Embedder(changed("", nullptr, "max_seq_length", "64"), {.threads = 1}).max_length(), 64U);
}

TEST(EmbedderRefuses, TextWithoutAVocabularyAndOneThatDoesNotFit) {
  Builder out;
  const Model sample = test::bert_model(kShape).build();
  for (const auto& [name, kept] : sample.attributes()) out.attribute(name, kept);
  for (std::uint32_t i = 0; i < sample.size(); ++i) out.tensor(std::string(sample.name(i)), sample[i]);
  const Model without = out.build();
  const Embedder embedder(without, {.threads = 1});
  EXPECT_EQ(embedder.tokenizer(), nullptr);
  EXPECT_EQ(test::thrown([&] { embedder.embed("a"); }).rule, "misuse/no-vocabulary");
  EXPECT_EQ(embed_all(embedder, {{1, 2}}).size(), 24U);
  EXPECT_NE(Embedder(without, {.threads = 1, .vocabulary = sample.tokenizer().get()}).tokenizer(), nullptr);
  const Tokenizer large = test::sample_wordpieces(41);
  EXPECT_EQ(why_not(without, {.vocabulary = &large}).rule, "embed/vocabulary");
}

TEST(EmbedOptions, AreSetByNameAndSayTheirWords) {
  EmbedOptions options;
  for (const std::string_view word : words(*find_option(OptionOf::embed, "pooling"))) {
    options.set("pooling", word);
    EXPECT_EQ(name(*options.pooling), word);
  }
  for (const std::string_view word : words(*find_option(OptionOf::embed, "precision"))) {
    options.set("precision", word);
    EXPECT_EQ(name(options.precision), word);
  }
  EXPECT_EQ(options.pooling, Pooling::lasttoken);
  EXPECT_EQ(options.precision, Precision::int8);
  const Finding pooling = test::thrown([&] { options.set("pooling", "Mean"); });
  EXPECT_EQ(pooling.kind, Kind::misuse);
  EXPECT_EQ(pooling.message,
            "pooling cannot be \"Mean\": it is one of mean cls max mean_sqrt_len weightedmean lasttoken");
  EXPECT_EQ(test::thrown([&] { options.set("precision", ""); }).message,
            "precision cannot be \"\": it is one of f32 f16 bf16 int8");
  options.set("heads", "4");
  options.set("normalize", "false");
  options.set("prompt", "");
  options.set("ignore-setting", "a");
  options.set("ignore-setting", "b,c");
  EXPECT_EQ(options.heads, 4U);
  EXPECT_EQ(options.normalize, std::optional(false));
  EXPECT_EQ(options.prompt, "");
  EXPECT_EQ(options.ignore_settings, (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(test::thrown([&] { options.set("heads", "0"); }).message,
            "heads is a whole number from 1 to 65536, not \"0\"");
}

TEST(EmbedderRefuses, CallsThatCannotBe) {
  const Embedder embedder(test::bert_model(kShape).build(), {.threads = 1});
  EXPECT_EQ(test::thrown([&] { embed_all(embedder, {{}}); }).kind, Kind::misuse);
  EXPECT_EQ(test::thrown([&] { embed_all(embedder, {Ids(301, 1)}); }).kind, Kind::misuse);
  EXPECT_EQ(test::thrown([&] { embed_all(embedder, {{40}}); }).kind, Kind::misuse);
  std::vector<float> small(23);
  const std::string_view text = "a";
  EXPECT_EQ(test::thrown([&] { embedder.embed(std::span(&text, 1), small); }).kind, Kind::misuse);
}

}  // namespace
}  // namespace weighbridge

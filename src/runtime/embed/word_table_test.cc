// SPDX-License-Identifier: Apache-2.0
// Tables of word vectors built here: what is averaged, and an error for each fault. tests/interop/test_model2vec.py has
// the package's own vectors.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/thrown.h"
#include "weighbridge/embed.h"
#include "weighbridge/model.h"

namespace weighbridge {
namespace {

Bytes floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return convert::testing::keep(std::move(bytes));
}

Tokenizer words() {
  Tokenizer out;
  out.kind = Tokenizer::Kind::wordpiece;
  for (const char* token : {"[PAD]", "[UNK]", "sun", "moon", "##s"}) out.tokens.push_back(token);
  out.vocab_size = 5;
  return out;
}

const std::vector<float> kRows = {9, 9, 7, 7, 3, 4, 1, 2, 5, 0};

Builder table(const std::vector<float>& rows = kRows, const char* name = "embeddings") {
  Builder out;
  const std::vector<std::uint64_t> shape = {rows.size() / 2, 2};
  out.object(name, Layout::dense, shape, {}, {{"data", DType::f32, shape, floats(rows)}});
  out.tokenizer(words());
  return out;
}

TEST(WordTable, TheVectorIsTheMeanOfTheRowsOfKnownTokens) {
  for (const char* name : {"embeddings", "embedding.weight"}) {
    const Embedder embedder(table(kRows, name).build());
    EXPECT_EQ(embedder.dimension(), 2U);
    EXPECT_FALSE(embedder.normalize());
    EXPECT_EQ(embedder.embed("Sun moons"), (std::vector<float>{3, 2}));
    EXPECT_EQ(embedder.embed("sun 漢 comet"), (std::vector<float>{3, 4}));
    EXPECT_EQ(embedder.embed(""), (std::vector<float>{0, 0}));
    EXPECT_EQ(embedder.embed("comet"), (std::vector<float>{0, 0}));
  }
  const Embedder unit(table().build(), {.normalize = true});
  EXPECT_FLOAT_EQ(unit.embed("sun")[0], 0.6F);
  EXPECT_EQ(unit.embed("comet"), (std::vector<float>{0, 0}));
}

TEST(WordTable, IdsAreTakenAsTheyAre) {
  const Embedder embedder(table().build());
  const std::vector<std::uint32_t> ids = {1, 2};
  const std::span<const std::uint32_t> one(ids);
  std::vector<float> out(2);
  embedder.embed_ids(std::span(&one, 1), out);
  EXPECT_EQ(out, (std::vector<float>{5, 5.5}));
}

TEST(WordTable, LongTextsAreCutAtTheLengthThatTheModelStates) {
  Builder builder = table();
  builder.attribute("hf.max_length", Value::text("2"));
  const Embedder embedder(builder.build());
  EXPECT_EQ(embedder.max_length(), 2U);
  std::vector<Embedded> what(1);
  std::vector<float> out(2);
  const std::string_view text = "sun sun moon";
  embedder.embed(std::span(&text, 1), out, what);
  EXPECT_TRUE(what[0].truncated);
  EXPECT_EQ(out, (std::vector<float>{3, 4}));
  Builder endless = table();
  endless.attribute("hf.max_length", Value::text("null"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "sun ";
  for (int i = 0; i < 1000; ++i) many += "moon ";
  EXPECT_EQ(Embedder(endless.build()).embed(many), (std::vector<float>{2, 3}));
  EXPECT_EQ(Embedder(table().build()).embed(many), (std::vector<float>{3, 4}));
}

TEST(WordTable, ClusteredVocabulariesHaveARowAndAFactorForEachId) {
  Builder builder;
  builder.object("embeddings", Layout::dense, {2, 2}, {}, {{"data", DType::f32, {2, 2}, floats({1, 2, 10, 20})}});
  builder.object("mapping", Layout::dense, {5}, {}, {{"data", DType::f32, {5}, floats({0, 0, 1, 0, 1})}});
  builder.object("weights", Layout::dense, {5}, {}, {{"data", DType::f32, {5}, floats({1, 1, 2, 0.5, 1})}});
  builder.tokenizer(words());
  EXPECT_EQ(Embedder(builder.build()).embed("sun moon"), (std::vector<float>{10.25, 20.5}));
}

TEST(WordTable, TheSameBitsForAnyNumberOfThreads) {
  const Model model = table().build();
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back(std::string(static_cast<std::size_t>(i % 9), 'x') + " sun moons moon");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<float> one(1000), many(1000);
  Embedder(model, {.threads = 1}).embed(views, one);
  Embedder(model, {.threads = 4}).embed(views, many);
  EXPECT_EQ(one, many);
}

TEST(WordTable, TheKindOfItsVectorsIsThatOfTheTable) {
  const std::string kind = Embedder(table().build()).kind();
  EXPECT_EQ(Embedder(table(kRows, "embedding.weight").build(), {.threads = 2}).kind(), kind);
  EXPECT_NE(Embedder(table({9, 9, 7, 7, 3, 4, 1, 2, 5, 1}).build()).kind(), kind);
  EXPECT_NE(Embedder(table().build(), {.normalize = true}).kind(), kind);
}

TEST(WordTable, EachFaultIsNamed) {
  const auto mapped = [](const std::vector<float>& rows, std::uint64_t count) {
    Builder builder = table();
    builder.object("mapping", Layout::dense, {count}, {}, {{"data", DType::f32, {count}, floats(rows)}});
    return builder.build();
  };
  EXPECT_EQ(test::thrown([&] { Embedder{mapped({0, 0, 0, 0, 5}, 5)}; }).rule, "embed/shape");
  EXPECT_EQ(test::thrown([&] { Embedder{mapped({0, 0, 0, 0, -1}, 5)}; }).rule, "embed/shape");
  EXPECT_EQ(test::thrown([&] { Embedder{mapped({0, 0, 0}, 3)}; }).rule, "embed/vocabulary");
  EXPECT_EQ(test::thrown([&] { Embedder{table({1, 2, 3, 4}).build()}; }).rule, "embed/vocabulary");
  const float none = std::numeric_limits<float>::quiet_NaN();
  const Embedder broken(table({9, 9, 7, 7, none, 4, 1, 2, 5, 0}).build());
  EXPECT_EQ(test::thrown([&] { broken.embed("sun"); }).rule, "embed/not-finite");
  EXPECT_EQ(broken.embed("moon"), (std::vector<float>{1, 2}));
  Builder length = table();
  length.attribute("hf.max_length", Value::text("-3"));
  EXPECT_EQ(test::thrown([&] { Embedder{length.build()}; }).rule, "embed/key");
  EXPECT_EQ(test::thrown([&] { Embedder(table().build(), {.precision = Precision::int8}); }).kind, Kind::misuse);
  EXPECT_EQ(test::thrown([&] { Embedder(table().build(), {.pooling = Pooling::cls}); }).kind, Kind::misuse);
}

}  // namespace
}  // namespace weighbridge

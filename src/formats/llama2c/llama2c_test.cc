// SPDX-License-Identifier: Apache-2.0
// What the corpus cannot show: attributes, names and offsets of the tensors, the tokenizer with its merges, what
// detection accepts, and the real stories260K.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/llama2c/format.h"
#include "support/format_testing.h"
#include "support/test_data.h"
#include "support/thrown.h"

namespace weighbridge::llama2c {
namespace {

using test::bytes_of;
using test::Outcome;

const std::vector<core::CorpusCase>& corpus() {
  static const std::vector<core::CorpusCase> all = cases();
  return all;
}

Outcome walk(const std::string& bytes, const std::optional<std::string>& tokenizer = {}) {
  const auto source = memory_source(bytes_of(bytes), "a.bin");
  Outcome out;
  core::Findings findings(out.report, core::Findings::Mode::all);
  core::Draft draft;
  draft.add_source(source);
  if (tokenizer) draft.tokenizer = memory_source(bytes_of(*tokenizer), "b.bin");
  read(*source, {}, findings, draft);
  out.model = draft.finish();
  return out;
}

std::string bytes_of_case(std::string_view name) { return test::case_of(corpus(), name).bytes; }

core::Probe probe(const std::string& bytes) {
  return {.head = std::as_bytes(std::span(bytes)).first(std::min<std::size_t>(bytes.size(), 4096)),
          .tail = {},
          .size = bytes.size(),
          .extension = {}};
}

TEST(Llama2c, SaysItsSizesInTheWordsOfConfigurations) {
  const Model model = walk(bytes_of_case("valid-tied")).model;
  const std::pair<const char*, std::int64_t> expected[] = {
      {"hidden_size", 4},         {"intermediate_size", 3}, {"num_hidden_layers", 2},      {"num_attention_heads", 2},
      {"num_key_value_heads", 1}, {"vocab_size", 5},        {"max_position_embeddings", 3}};
  for (const auto& [key, value] : expected) EXPECT_EQ(model.attribute(key)->as_i64(), value) << key;
  EXPECT_EQ(model.attribute("tie_word_embeddings")->as_bool(), true);
  EXPECT_EQ(model.attribute("rope_theta")->as_f64(), 10000.0);
  EXPECT_EQ(model.attribute("rms_norm_eps")->to_text(), "1e-05");
  const Model untied = walk(bytes_of_case("valid-untied")).model;
  EXPECT_EQ(untied.attribute("tie_word_embeddings")->as_bool(), false);
  EXPECT_EQ(untied.attribute("vocab_size")->as_i64(), 5);
}

// The values of the corpus count up by an eighth, so the first value of each tensor shows its offset.
TEST(Llama2c, TensorsFollowEachOtherInTheOrderOfTheFile) {
  for (const char* name : {"valid-tied", "valid-untied"}) {
    const Model model = walk(bytes_of_case(name)).model;
    std::uint64_t next = 0;
    for (std::uint32_t i = 0; i < model.size(); ++i) {
      const Array values = model[i].to_dense();
      float first = 0;
      std::memcpy(&first, values.data.get(), sizeof first);
      EXPECT_EQ(first, static_cast<float>(next) / 8) << model.name(i);
      next += values.size / sizeof(float);
    }
    EXPECT_EQ(kHeaderSize + next * sizeof(float), bytes_of_case(name).size());
  }
  const Model model = walk(bytes_of_case("valid-untied")).model;
  ASSERT_EQ(model.size(), 23U);
  const std::vector<std::pair<std::string, std::vector<std::uint64_t>>> some = {{"tok_embeddings.weight", {5, 4}},
                                                                                {"layers.0.attention_norm.weight", {4}},
                                                                                {"layers.1.wq.weight", {4, 4}},
                                                                                {"layers.1.wk.weight", {2, 4}},
                                                                                {"layers.0.w1.weight", {3, 4}},
                                                                                {"layers.1.w2.weight", {4, 3}},
                                                                                {"norm.weight", {4}},
                                                                                {"freq_cis_imag", {3, 1}},
                                                                                {"output.weight", {5, 4}}};
  for (const auto& [name, shape] : some) {
    const auto tensor = model.find(name);
    ASSERT_TRUE(tensor.has_value()) << name;
    EXPECT_TRUE(std::ranges::equal(tensor->shape(), shape)) << name;
  }
}

TEST(Llama2c, DetectionTakesExactLengthsOnly) {
  for (const core::CorpusCase& c : corpus()) {
    const bool is = c.rule != "llama2c/too-short" && c.rule != "llama2c/field" && c.rule != "llama2c/heads" &&
                    c.rule != "llama2c/kv-heads" && c.rule != "llama2c/length";
    EXPECT_EQ(matches(probe(c.bytes)), is) << c.name;
  }
  // Files full of small integers that are not checkpoints.
  for (std::size_t size = 28; size < 400; ++size) {
    EXPECT_FALSE(matches(probe(std::string(size, '\0'))));
    EXPECT_FALSE(matches(probe(std::string(size, '\1'))));
  }
}

// Sizes stay within 64 bits for every valid header.
TEST(Llama2c, TheLargestSizesDoNotWrap) {
  Header h;
  const std::int32_t* maximum = kMaxFields;
  Header::each(h, [&](std::int32_t& field, base::FieldNote) { field = *maximum++; });
  h.n_heads = h.n_kv_heads = 1;
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  ASSERT_TRUE(check_fields(h, findings));
  EXPECT_GT(file_size(h), std::uint64_t{1} << 56);
  h.vocab_size = -h.vocab_size;
  EXPECT_GT(file_size(h), std::uint64_t{1} << 56);
  EXPECT_LT(file_size(h), std::uint64_t{1} << 62);
}

TEST(Llama2c, TheTokenizerIsTheCallersOrTheNeighbors) {
  const core::CorpusCase& c = test::case_of(corpus(), "valid-tokenizer");
  EXPECT_EQ(walk(c.bytes).model.tokenizer(), nullptr);
  const Model model = walk(c.bytes, c.sidecar->bytes).model;
  ASSERT_NE(model.tokenizer(), nullptr);
  const Tokenizer& t = *model.tokenizer();
  EXPECT_EQ(t.kind, Tokenizer::Kind::bpe);
  EXPECT_EQ(t.vocab_size, 262U);
  EXPECT_EQ(t.tokens.size(), 262U);
  EXPECT_EQ(t.tokens[0], "<unk>");
  EXPECT_EQ(t.tokens[3], std::string_view("\0", 1));
  EXPECT_EQ(t.tokens[258], "\xFF");
  EXPECT_EQ(t.tokens[259], "ab");
  const std::vector<Tokenizer::Merge> merges = {
      {260, 261, 259, 1}};  // ranked after <unk>, BOS and EOS, which share the first rank
  EXPECT_EQ(t.merges, merges);
  const std::vector<std::pair<std::string, std::uint32_t>> special = {{"unk", 0}, {"bos", 1}, {"eos", 2}};
  EXPECT_EQ(t.special, special);
  EXPECT_EQ(tokenizer_name("models/stories.v1.bin"), "stories.v1.tokenizer");
  EXPECT_EQ(tokenizer_name(".bin"), ".bin.tokenizer");
}

// Equal scores share a rank, the last of equal pieces counts, and a piece splits in every way that gives two pieces.
TEST(Llama2c, MergesFollowFromScores) {
  std::string file = test::case_of(corpus(), "valid-tokenizer").sidecar->bytes;
  file.resize(file.size() - 8 * 3 - 4);  // "ab", "a" and "b"
  const auto add = [&](float score, const std::string& text) {
    const auto length = static_cast<std::int32_t>(text.size());
    file.append(reinterpret_cast<const char*>(&score), 4).append(reinterpret_cast<const char*>(&length), 4) += text;
  };
  // 259 .. 265
  for (const auto& [score, text] : std::vector<std::pair<float, std::string>>{
           {-9, "a"}, {-3, "aa"}, {-9, "a"}, {-1, "aaa"}, {-3, "ab"}, {-9, "b"}, {-2, "aab"}})
    add(score, text);
  Report report;
  core::Findings findings(report, core::Findings::Mode::all);
  const auto t = read_tokenizer_file(*memory_source(bytes_of(file)), 266, {}, findings);
  ASSERT_TRUE(t.has_value()) << report.findings().front().message;
  const std::vector<Tokenizer::Merge> expected = {
      {261, 260, 262, 1}, {260, 261, 262, 1},  // aaa
      {261, 263, 265, 2}, {260, 264, 265, 2},  // aab
      {261, 261, 260, 3},                      // aa
      {261, 264, 263, 3},                      // ab, with the same score
  };
  EXPECT_EQ(t->merges, expected);
}

// Changing or removing any byte gives a finding or a model, never anything else.
TEST(Llama2c, BrokenTokenizersAreFindings) {
  const core::CorpusCase& c = test::case_of(corpus(), "valid-tokenizer");
  const std::string& good = c.sidecar->bytes;
  std::size_t broken = 0;
  for (std::size_t at = 0; at < good.size(); at += 3) {
    for (const char with : {'\0', '\x7f', '\xff'}) {
      std::string changed = good;
      changed[at] = with;
      const Outcome out = walk(c.bytes, changed);
      EXPECT_EQ(out.model.tokenizer() != nullptr, out.report.valid());
      broken += out.report.valid() ? 0U : 1U;
    }
    EXPECT_FALSE(walk(c.bytes, good.substr(0, at)).report.valid());
  }
  EXPECT_GT(broken, 1000U);
}

TEST(Llama2c, Stories260K) {
  WB_REQUIRE_TEST_DATA(path, "llama/stories260K.bin");
  WB_REQUIRE_TEST_DATA(tokens, "llama/tok512.bin");
  const Outcome out = walk(test::contents(path), test::contents(tokens));
  EXPECT_EQ(out.report.total(), 0U);
  EXPECT_EQ(out.model.size(), 49U);
  const Tensor wk = out.model["layers.4.wk.weight"];
  EXPECT_TRUE(std::ranges::equal(wk.shape(), std::vector<std::uint64_t>{32, 64}));
  ASSERT_NE(out.model.tokenizer(), nullptr);
  EXPECT_EQ(out.model.tokenizer()->tokens[403], " Once");
  // Cosines and sines for theta 10,000 and head size 8.
  const Array real = out.model["freq_cis_real"].to_dense();
  float value = 0;
  std::memcpy(&value, real.data.get() + std::size_t{4 * 7 + 1} * sizeof value, sizeof value);
  EXPECT_NEAR(value, 0.764842187, 1e-6);  // cos(7 x 10000^(-1/4))
}

}  // namespace
}  // namespace weighbridge::llama2c

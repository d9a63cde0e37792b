// SPDX-License-Identifier: Apache-2.0
// Names of llama.cpp: what a model has to be for them. tests/interop/test_gguf_naming.py has the names, the numbers and
// llama.cpp itself.
#include "convert/naming.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/convert_testing.h"
#include "support/sample_models.h"
#include "support/thrown.h"
#include "weighbridge/view.h"

namespace weighbridge::convert {
namespace {

using test::thrown;

std::string refusal(const Model& model) {
  const Finding finding = thrown([&] { named_for_llama_cpp(model); });
  EXPECT_EQ(finding.rule, "misuse/naming");
  return finding.message;
}

Builder bert_with(std::vector<std::uint64_t> words) {
  Builder out;
  for (const char* const key : {"num_layers", "max_position_emb", "intermediate_size", "num_attention_heads"})
    out.attribute(key, Value::text("1"));
  std::uint64_t bytes = 4;
  for (const std::uint64_t d : words) bytes *= d;
  out.tensor("embeddings.word_embeddings.weight", DType::f32, words, testing::pattern(bytes));
  return out;
}

TEST(Naming, ALlamaAndABertHaveTheNamesOfLlamaCpp) {
  const core::Derived llama = named_for_llama_cpp(test::llama_model({}).build());
  EXPECT_TRUE(llama.model.find("blk.0.attn_q.weight").has_value());
  EXPECT_EQ(llama.model.attribute("general.architecture")->as_text(), "llama");
  const core::Derived bert = named_for_llama_cpp(test::bert_model().build());
  EXPECT_TRUE(bert.model.find("blk.0.attn_output_norm.bias").has_value());
  EXPECT_EQ(bert.model.attribute("bert.attention.causal")->as_bool(), false);
}

TEST(Naming, AnotherModelIsRefused) {
  EXPECT_NE(refusal(test::plain_model().build()).find("word embeddings"), std::string::npos);
}

// A matrix without columns took memory for a token in each of its rows, as many as it likes.
TEST(Naming, RowsWithoutElementsAreNoVocabulary) {
  EXPECT_NE(refusal(bert_with({1U << 30, 0}).build()).find("not a matrix"), std::string::npos);
}

TEST(Naming, AVocabularyLargerThanItsEmbeddingsIsRefused) {
  Builder builder = bert_with({3, 2});
  Tokenizer tokenizer;
  tokenizer.vocab_size = 1U << 31;
  builder.tokenizer(std::move(tokenizer));
  EXPECT_NE(refusal(builder.build()).find("more tokens"), std::string::npos);
}

// Rows that a file repeats take no room in it, and each became a token.
TEST(Naming, FarMoreRowsThanTokensAreNoVocabulary) {
  Builder builder = bert_with({200'000, 1});
  Tokenizer tokenizer;
  tokenizer.vocab_size = 1;
  tokenizer.tokens.push_back("a");
  builder.tokenizer(std::move(tokenizer));
  EXPECT_NE(refusal(builder.build()).find("twice as many rows"), std::string::npos);
}

// Room for 2147483647 matrices was taken as soon as one was there: 64 GiB.
TEST(Naming, ExpertsThatAreNotThereTakeNoMemory) {
  Builder builder;
  const auto say = [&](const std::string& setting, const char* value) {
    builder.attribute("hf." + setting, Value::text(value));
  };
  say("architectures", "[\"MixtralForCausalLM\"]");
  say("model_type", "mixtral");
  say("num_hidden_layers", "1");
  say("num_attention_heads", "2");
  say("hidden_size", "8");
  say("num_local_experts", "2147483647");
  say("vocab_size", "3");
  builder.tensor("model.embed_tokens.weight", DType::f32, {3, 8}, testing::pattern(96));
  builder.tensor("model.layers.0.block_sparse_moe.experts.0.w1.weight", DType::f32, {4, 8}, testing::pattern(128));
  EXPECT_NE(refusal(builder.build()).find("blk.0.ffn_gate_exps.weight lacks its matrix 1"), std::string::npos);
}

Model with(const Model& model, const std::string& key, const std::string& text) {
  return view(model, {.set = {{key, text}}});
}

TEST(OwnNames, ComeBack) {
  const Model llama = test::llama_model({}).build(), bert = test::bert_model().build();
  const core::Derived back = with_own_names(named_for_llama_cpp(llama).model, "slm");
  EXPECT_TRUE(back.blockers.empty());
  EXPECT_TRUE(back.model.find("layers.0.wq.weight").has_value());
  EXPECT_TRUE(back.model.attribute("slm.hidden_size"));
  EXPECT_FALSE(back.model.attribute("llama.block_count"));
  const core::Derived weights = with_own_names(named_for_llama_cpp(bert).model, "embd");
  EXPECT_TRUE(weights.blockers.empty());
  EXPECT_TRUE(weights.model.find("encoder.layer.0.attention.output.LayerNorm.bias").has_value());
  EXPECT_FALSE(weights.model.attribute("bert.block_count"));
}

TEST(OwnNames, AreForNamesOfLlamaCppAlone) {
  const Model own = test::llama_model({}).build(), named = named_for_llama_cpp(own).model;
  EXPECT_TRUE(needs_own_names(named, "slm"));
  EXPECT_TRUE(needs_own_names(named, "embd"));
  EXPECT_FALSE(needs_own_names(named, "safetensors"));
  EXPECT_FALSE(needs_own_names(own, "slm"));
}

TEST(OwnNames, WhatCannotBeSeenSoIsABlocker) {
  const Model llama = named_for_llama_cpp(test::llama_model({}).build()).model;
  const auto blocker = [](const Model& model, std::string_view format) {
    const Plan plan = weighbridge::plan(model, format, {});
    return plan.blockers().empty() ? std::string() : plan.blockers()[0].to;
  };
  EXPECT_NE(blocker(with(llama, "general.architecture", "qwen2"), "slm").find("qwen2"), std::string::npos);
  EXPECT_NE(blocker(llama, "embd").find("its architecture is"), std::string::npos);
  EXPECT_NE(blocker(with(llama, "llama.expert_count", "8"), "slm").find("expert_count"), std::string::npos);
  EXPECT_NE(blocker(with(llama, "llama.rope.scaling.type", "yarn"), "slm").find("yarn"), std::string::npos);
  EXPECT_NE(blocker(with(llama, "llama.rope.scale_linear", "4"), "slm").find("no scaling"), std::string::npos);
  EXPECT_NE(blocker(with(llama, "tokenizer.ggml.model", "rwkv"), "slm").find("rwkv"), std::string::npos);
}

TEST(OwnNames, OneReasonIsGivenAndNotAllThatFollowsFromIt) {
  const Model llama = named_for_llama_cpp(test::llama_model({}).build()).model;
  const Plan plan = weighbridge::plan(with(llama, "llama.attention.head_count", "0"), "slm", {});
  ASSERT_EQ(plan.blockers().size(), 1U);
  EXPECT_NE(plan.blockers()[0].to.find("head_count"), std::string::npos);
  Builder vocabulary;
  vocabulary.attribute("general.architecture", Value::text("llama"));
  const Plan alone = weighbridge::plan(vocabulary.build(), "slm", {});
  ASSERT_EQ(alone.blockers().size(), 1U);
  EXPECT_NE(alone.blockers()[0].to.find("token_embd.weight"), std::string::npos);
}

std::string unseen(const Model& model, std::string_view format) {
  const core::Derived named = with_own_names(model, format);
  return named.blockers.empty() ? "" : named.blockers[0].to;
}

TEST(OwnNames, BlocksBeyondTheirNumberAreNotLeftOutSilently) {
  const Model llama = named_for_llama_cpp(test::llama_model({.layers = 2}).build()).model;
  const std::uint64_t blocks = *llama.attribute("llama.block_count")->as_u64();
  ASSERT_GT(blocks, 1U);
  EXPECT_EQ(unseen(llama, "slm"), "");
  EXPECT_NE(unseen(with(llama, "llama.block_count", std::to_string(blocks - 1)), "slm").find("blk."),
            std::string::npos);
  const Model bert = named_for_llama_cpp(test::bert_model().build()).model;
  EXPECT_EQ(unseen(bert, "embd"), "");
  EXPECT_NE(unseen(with(bert, "bert.block_count", "0"), "embd").find("blk."), std::string::npos);
}

TEST(OwnNames, NumbersThatContradictTheEmbeddingsAreRefused) {
  const Model llama = named_for_llama_cpp(test::llama_model({}).build()).model;
  for (const std::string_view key : {"llama.embedding_length", "llama.vocab_size"})
    for (const std::string_view number : {"0", "7", "2147483648"})
      EXPECT_NE(unseen(with(llama, std::string(key), std::string(number)), "slm").find(key), std::string::npos);
}

TEST(Naming, AModelThatLlamaCppCouldNotOpenIsRefused) {
  const Model llama = test::llama_model({.layers = 2}).build(), bert = test::bert_model().build();
  const auto without = [](const Model& model, const std::string& name) { return view(model, {.without = {name}}); };
  EXPECT_NE(refusal(without(llama, "layers.1.wq.weight")).find("blk.1.attn_q.weight"), std::string::npos);
  EXPECT_NE(refusal(without(llama, "norm.weight")).find("output_norm.weight"), std::string::npos);
  EXPECT_NE(refusal(without(bert, "encoder.layer.0.output.dense.bias")).find("blk.0.ffn_down.bias"), std::string::npos);
  EXPECT_NE(refusal(with(llama, "slm.layer_count", "2147483648")), "");
}

TEST(Naming, AModelWithTheNamesOfLlamaCppIsToldSo) {
  EXPECT_NE(refusal(named_for_llama_cpp(test::llama_model({}).build()).model).find("already"), std::string::npos);
}

// ---- vocabularies of a GGUF as files of a folder ----

template <typename T> Value numbers_of(DType dtype, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return Value::numbers(dtype, {bytes.begin(), bytes.end()});
}

struct Pieces {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "a"};
  std::vector<std::int32_t> types{2, 3, 3, 1};
  std::vector<float> scores{0, 0, 0, -1};
  std::vector<std::pair<std::string, std::uint64_t>> ids{};  // of roles
};
FolderVocabulary folder_of(const Pieces& pieces, DType of_scores = DType::f32) {
  Builder out;
  const std::string keys = "tokenizer.ggml.";
  out.attribute(keys + "model", Value::text("llama"));
  Texts tokens;
  for (const std::string& token : pieces.tokens) tokens.push_back(token);
  out.attribute(keys + "tokens", Value::texts(std::move(tokens)));
  out.attribute(keys + "token_type", numbers_of(DType::i32, pieces.types));
  out.attribute(keys + "scores", numbers_of(of_scores, pieces.scores));
  for (const auto& [role, id] : pieces.ids) out.attribute(keys + role + "_token_id", Value::integer(id, DType::u32));
  return vocabulary_for_folder(out.build());
}
std::string file_of(const FolderVocabulary& made, std::string_view name) {
  for (const auto& [file, value] : made.files)
    if (file == name)
      return value.as_text() ? std::string(*value.as_text())
                             : std::string(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
  return "";
}

// Without it, transformers gives 1 259 264 267 265 268 264 for "a  b<|user|>a", where llama.cpp has 259 twice more.
TEST(VocabularyBack, SpacesAfterAddedTokensAreKept) {
  EXPECT_NE(file_of(folder_of({}), "tokenizer_config.json").find("\"legacy\": true"), std::string::npos);
}

// sentencepiece said "unk is already defined", "there are not 256 byte pieces" and "piece must not be empty".
TEST(VocabularyBack, PiecesThatSentencepieceDoesNotOpenAreRefused) {
  const auto refused = [](const Pieces& pieces) { return folder_of(pieces).refused; };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({.types = {2, 3, 3, 2}}), "it has two unknown tokens");
  EXPECT_EQ(refused({.tokens = {"a", "<s>", "</s>", "b"}, .types = {1, 3, 3, 1}}), "it has no unknown token");
  EXPECT_EQ(refused({.tokens = {"<unk>", "<s>", "</s>", "<0x0A>"}, .types = {2, 3, 3, 6}}),
            "its tokens of bytes are not <0x00> to <0xFF>");
  EXPECT_EQ(refused({.tokens = {"<unk>", "<s>", "</s>", ""}}), "token 3 is empty");
}

// They were passed over, or other numbers taken for them.
TEST(VocabularyBack, WhatNoVocabularySaysIsRefused) {
  EXPECT_EQ(folder_of({.types = {2, 3, 3, 0}}).refused, "token 3 has the type 0");
  EXPECT_EQ(folder_of({.types = {2, 3, 77, 1}}).refused, "token 2 has the type 77");
  EXPECT_EQ(folder_of({.scores = {0, 0, 0, NAN}}).refused, "the score of token 3 is not a number");
  EXPECT_EQ(folder_of({}, DType::i32).refused, "it has no score for each token");
  EXPECT_EQ(folder_of({.ids = {{"bos", 4}}}).refused, "the id of bos is not in the vocabulary");
  EXPECT_EQ(folder_of({.ids = {{"unknown", 1}}}).refused, "two tokens are called the unknown one");
}

// The unknown token was that of id 0 then, and bytes stood for what no piece has.
TEST(VocabularyBack, TheUnknownTokenIsTheOneOfItsType) {
  const std::string file =
      file_of(folder_of({.tokens = {"<pad>", "<s>", "</s>", "<unk>"}, .types = {3, 3, 3, 2}}), "tokenizer.model");
  // Fields of the trainer: byte_fallback (35) 0, unk_id (40) 3.
  EXPECT_NE(file.find(std::string("\x98\x02\x00\xC0\x02\x03", 6)), std::string::npos);
}

}  // namespace
}  // namespace weighbridge::convert

// SPDX-License-Identifier: Apache-2.0
// Names of llama.cpp: what a model has to be for them. tests/interop/test_gguf_naming.py has the names, the numbers and
// llama.cpp itself.
#include "convert/naming.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/convert_testing.h"
#include "support/sample_models.h"
#include "support/thrown.h"

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
  const Named llama = named_for_llama_cpp(test::llama_model({}).build());
  EXPECT_TRUE(llama.model.find("blk.0.attn_q.weight").has_value());
  EXPECT_EQ(llama.model.attribute("general.architecture")->as_text(), "llama");
  const Named bert = named_for_llama_cpp(test::bert_model().build());
  EXPECT_TRUE(bert.model.find("blk.0.attn_output_norm.bias").has_value());
  EXPECT_EQ(bert.model.attribute("bert.attention.causal")->as_bool(), false);
}

TEST(Naming, AnotherModelIsRefused) {
  EXPECT_NE(refusal(test::plain_model().build()).find("word embeddings"), std::string::npos);
}

// A matrix without columns took memory for a token in each of its rows, as many as it likes.
TEST(Naming, RowsWithoutElementsAreNoVocabulary) {
  EXPECT_NE(refusal(bert_with({1U << 30, 0}).build()).find("no matrix"), std::string::npos);
}

TEST(Naming, AVocabularyLargerThanItsEmbeddingsIsRefused) {
  Builder builder = bert_with({3, 2});
  Tokenizer tokenizer;
  tokenizer.vocab_size = 1U << 31;
  builder.tokenizer(std::move(tokenizer));
  EXPECT_NE(refusal(builder.build()).find("more tokens"), std::string::npos);
}

}  // namespace
}  // namespace weighbridge::convert

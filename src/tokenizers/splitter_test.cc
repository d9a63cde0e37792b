// SPDX-License-Identifier: Apache-2.0
// How texts are divided into words. The expected divisions are those of Python's package regex for the same
// expressions.
#include "tokenizers/splitter.h"

#include <gtest/gtest.h>

namespace weighbridge::tokenizers {
namespace {

using Words = std::vector<std::string>;

Words words(std::string_view name, std::string_view text) {
  const Splitter::Named* const named = Splitter::find(name);
  EXPECT_NE(named, nullptr) << name;
  Words out;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : Splitter(*named).ends(text)) {
    EXPECT_GT(end, begin);
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return out;
}

TEST(Splitter, LikeGpt2) {
  EXPECT_EQ(words("gpt-2", "I'm 1234  ok!?\n\n x"), (Words{"I", "'m", " 1234", " ", " ok", "!?", "\n\n", " x"}));
  EXPECT_EQ(words("gpt-2", "a   "), (Words{"a", "   "}));
  EXPECT_EQ(words("gpt-2", ""), Words{});
  EXPECT_EQ(words("gpt-2", "\u00e9t\u00e9 \u4e2d\u6587\u3000x"),
            (Words{"\u00e9t\u00e9", " \u4e2d\u6587", "\u3000", "x"}));
}

TEST(Splitter, LikeLlama3) {
  EXPECT_EQ(words("llama-bpe", "I'LL 1234567 ok!?\r\n\r\n  x"),
            (Words{"I", "'LL", " ", "123", "456", "7", " ok", "!?\r\n\r\n", " ", " x"}));
  EXPECT_EQ(words("llama-bpe", "   \n  \n a"), (Words{"   \n  \n", " a"}));
  EXPECT_EQ(words("llama-bpe", "$abc"), (Words{"$abc"}));
  EXPECT_TRUE(Splitter::find("llama-bpe")->whole_words);
}

TEST(Splitter, LikeGpt4oByTheCaseOfLetters) {
  EXPECT_EQ(words("hf-gpt-4o", "HelloWORLD's camelCase 1234/\n"),
            (Words{"Hello", "WORLD's", " camel", "Case", " ", "123", "4", "/\n"}));
  EXPECT_EQ(words("hf-gpt-4o", "\u043f\u0440\u0438\u0412\u0435\u0442"),
            (Words{"\u043f\u0440\u0438", "\u0412\u0435\u0442"}));
  EXPECT_EQ(words("hf-gpt-4o", "e\u0301a"), Words{"e\u0301a"});
  EXPECT_EQ(words("hf-tekken", "it's 12"), (Words{"it", "'s", " ", "1", "2"}));
}

TEST(Splitter, LlamaCppKnowsCaseInAsciiOnly) {
  EXPECT_EQ(words("gpt-4o", "camelCase'S"), (Words{"camel", "Case'S"}));
  EXPECT_EQ(words("gpt-4o", "\u043f\u0440\u0438\u0412\u0435\u0442"), Words{"\u043f\u0440\u0438\u0412\u0435\u0442"});
  EXPECT_EQ(words("tekken", "e\u0301a"), (Words{"e", "\u0301a"}));
  EXPECT_TRUE(Splitter::find("tekken")->whole_words);
}

TEST(Splitter, Digits) {
  EXPECT_EQ(words("qwen2", "123"), (Words{"1", "2", "3"}));
  EXPECT_EQ(words("starcoder", "a12"), (Words{"a", "1", "2"}));
  EXPECT_EQ(words("falcon", "12345"), (Words{"123", "45"}));
  EXPECT_EQ(words("deepseek-v3", "12345 a"), (Words{"123", "45", " a"}));
}

TEST(Splitter, InvalidUtf8IsDividedToo) {
  for (const char* const name : {"gpt-2", "llama-bpe", "qwen2", "qwen35", "default", "deepseek-coder", "deepseek-v3",
                                 "gpt-4o", "hf-gpt-4o", "tekken", "hf-tekken"})
    for (const std::string_view text : {"\xff", "a\xe4\xb8", "\xf0\x9f\xa6", " \x80 \xc3"}) words(name, text);
  EXPECT_EQ(Splitter::find("no such"), nullptr);
}

// \s*[\r\n]+ looks for a line break behind a run of spaces, from each of its beginnings.
TEST(Splitter, ALongRunOfSpacesTakesNoTime) {
  EXPECT_EQ(words("llama-bpe", std::string(1'000'000, ' ') + "x").size(), 2U);
}

// Both parts of a word may have letters without case.
TEST(Splitter, ALongRunOfLettersTakesNoTime) {
  for (const char* const name : {"gpt-4o", "hf-gpt-4o", "hf-tekken"})
    for (const char* const letter : {"\u4e2d", "A", "a"}) {
      std::string text;
      for (int i = 0; i < 100'000; ++i) text += letter;
      EXPECT_EQ(words(name, text).size(), 1U);
    }
}

}  // namespace
}  // namespace weighbridge::tokenizers

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

TEST(Splitter, Digits) {
  EXPECT_EQ(words("qwen2", "123"), (Words{"1", "2", "3"}));
  EXPECT_EQ(words("starcoder", "a12"), (Words{"a", "1", "2"}));
  EXPECT_EQ(words("falcon", "12345"), (Words{"123", "45"}));
  EXPECT_EQ(words("deepseek-v3", "12345 a"), (Words{"123", "45", " a"}));
}

TEST(Splitter, InvalidUtf8IsDividedToo) {
  for (const char* const name : {"gpt-2", "llama-bpe", "qwen2", "qwen35", "default", "deepseek-coder", "deepseek-v3"})
    for (const std::string_view text : {"\xff", "a\xe4\xb8", "\xf0\x9f\xa6", " \x80 \xc3"}) words(name, text);
  EXPECT_EQ(Splitter::find("no such"), nullptr);
}

// \s*[\r\n]+ looks for a line break behind a run of spaces, from each of its beginnings.
TEST(Splitter, ALongRunOfSpacesTakesNoTime) {
  EXPECT_EQ(words("llama-bpe", std::string(1'000'000, ' ') + "x").size(), 2U);
}

}  // namespace
}  // namespace weighbridge::tokenizers

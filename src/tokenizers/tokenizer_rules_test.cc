// SPDX-License-Identifier: Apache-2.0
// The attribute tokenizer_rules: there and back, what is none, and what it says in words.
#include "tokenizers/tokenizer_rules.h"

#include <gtest/gtest.h>

namespace weighbridge::tokenizers {
namespace {

const TokenizerRules kAll{.byte_level = true,
                          .apart = true,
                          .whole_words = true,
                          .words = {"\\p{N}\n\"", "\u00e9"},
                          .bos = false,
                          .eos = true,
                          .control = {0, UINT32_MAX},
                          .found = {7},
                          .ends = {1, 2}};

TEST(TokenizerRules, ComeBack) {
  EXPECT_EQ(text_of({}), "");
  for (const TokenizerRules& rules : {kAll, TokenizerRules{.bos = true}, TokenizerRules{.byte_level = true}})
    EXPECT_EQ(parse_tokenizer_rules(text_of(rules)), rules) << text_of(rules);
  EXPECT_EQ(parse_tokenizer_rules("{}"), TokenizerRules{});
}

TEST(TokenizerRules, OfWordPieceComeBack) {
  const TokenizerRules rules{
      .normalizer = R"({"type":"NFC"})",
      .pre_tokenizer = "null",
      .word_limit = 7,
      .prefix = "",
      .frame = TextFrame{{1}, {}},
      .added = std::vector<AddedToken>{{.id = 3, .lstrip = true}, {.id = 4, .of_vocabulary = false}}};
  EXPECT_EQ(parse_tokenizer_rules(text_of(rules)), rules) << text_of(rules);
  EXPECT_TRUE(has_own_normalizer(text_of(rules)));
  EXPECT_NE(beyond_wordpieces(rules), "");
  EXPECT_EQ(beyond_wordpieces({}), "");
  for (const char* const text : {R"({"frame":[[1]]})", R"({"frame":[[1],[2],[3]]})", R"({"added":[[1]]})",
                                 R"({"added":[[1,32]]})", R"({"prefix":1})", R"({"word_limit":-1})"})
    EXPECT_FALSE(parse_tokenizer_rules(text)) << text;
}

TEST(TokenizerRules, WhatIsNoneIsNoRules) {
  const std::string all = text_of(kAll);
  for (std::size_t n = 0; n < all.size(); ++n) EXPECT_FALSE(parse_tokenizer_rules(all.substr(0, n))) << n;
  for (const char* const text :
       {"null", "{}x", R"({"bos":null})", R"({"bos":"true"})", R"({"ends":4})", R"({"ends":[4294967296]})",
        R"({"ends":[1.5]})", R"({"ends":[[1]]})", R"({"words":[1]})", R"({"byte-level":true})"})
    EXPECT_FALSE(parse_tokenizer_rules(text)) << text;
}

TEST(TokenizerRules, SayWhatMergesDoNotDo) {
  EXPECT_EQ(beyond_merges({.byte_level = true, .bos = true, .eos = false, .control = {1}}), "");
  EXPECT_EQ(
      beyond_merges(kAll),
      "it divides texts into words by regular expressions first; it takes whole words without their merges; it has "
      "tokens of characters that no merge makes; it finds 1 added token in texts first; it puts no BOS before a "
      "text; it puts EOS behind a text; 2 more tokens end a generated text");
}

}  // namespace
}  // namespace weighbridge::tokenizers

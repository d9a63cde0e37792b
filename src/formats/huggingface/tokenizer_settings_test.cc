// SPDX-License-Identifier: Apache-2.0
// The table of the settings of tokenizers has a row for every key that transformers reads.
#include <gtest/gtest.h>

#include "formats/huggingface/setting_judge.h"

namespace weighbridge::huggingface {
namespace {

TEST(TokenizerSettings, EveryKeyOfTheTokenizerClassesHasAVerdict) {
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
#define WB_FIELD(file, key) {file, key},
#include "formats/huggingface/tokenizer_fields_generated.inc"
#undef WB_FIELD
  };
  for (const auto& [file, key] : kFields) EXPECT_NE(find_setting(file, key), nullptr) << file << " " << key;
  ASSERT_GT(std::size(kFields), 70U);
}

TEST(TokenizerSettings, ARefusedKeyPassesWithTheValuesThatChangeNothing) {
  SettingJudge judge;
  const auto say = [&](std::string_view key, std::string_view json) {
    judge.judge("tokenizer_config.json", "tokenizer_config.json", key, json, SettingJudge::Unknown::warned);
  };
  say("truncation_side", "\"right\"");
  say("tokenizer_class", "\"BertTokenizerFast\"");
  say("never_split", "[ ]");
  say("do_basic_tokenize", "true");
  EXPECT_EQ(judge, SettingJudge{});
  say("truncation_side", "\"left\"");
  say("tokenizer_class", "\"BertJapaneseTokenizer\"");
  say("cut_here", "1");
  ASSERT_EQ(judge.all_refused().size(), 2U);
  EXPECT_EQ(judge.all_refused()[0].key, "truncation_side");
  ASSERT_EQ(judge.all_unknown().size(), 1U);
  EXPECT_EQ(judge.all_unknown()[0].key, "cut_here");
}

}  // namespace
}  // namespace weighbridge::huggingface

// SPDX-License-Identifier: Apache-2.0
// The table of settings: every field of the packages has a row, and a row decides as it says.
#include "formats/huggingface/setting_judge.h"

#include <gtest/gtest.h>

namespace weighbridge::huggingface {
namespace {

using Unknown = SettingJudge::Unknown;

TEST(EmbeddingSettings, EveryFieldOfTheConfigurationClassesHasAVerdict) {
  constexpr std::pair<std::string_view, std::string_view> kFields[] = {
#define WB_FIELD(file, key) {file, key},
#include "formats/huggingface/setting_fields_generated.inc"
#undef WB_FIELD
  };
  for (const auto& [file, key] : kFields) EXPECT_NE(find_setting(file, key), nullptr) << file << " " << key;
  ASSERT_GT(std::size(kFields), 140U);
}

TEST(EmbeddingSettings, EachKeyHasOneRow) {
  for (const SettingRow& row : setting_rows()) EXPECT_EQ(find_setting(row.file, row.key), &row) << row.file << row.key;
}

TEST(EmbeddingSettings, ARefusedKeyPassesWithTheValuesThatChangeNothing) {
  SettingJudge judge;
  judge.judge("config.json", "config.json", "position_embedding_type", "\"absolute\"", Unknown::warned);
  judge.judge("config.json", "config.json", "position_embedding_type", "null", Unknown::warned);
  judge.judge("config.json", "config.json", "pruned_heads", "{ }", Unknown::warned);
  EXPECT_EQ(judge, SettingJudge{});
  judge.judge("config.json", "config.json", "position_embedding_type", "\"relative_key\"", Unknown::warned);
  ASSERT_EQ(judge.all_refused().size(), 1U);
  EXPECT_EQ(judge.all_refused()[0].key, "position_embedding_type");
  EXPECT_EQ(judge.all_refused()[0].value, "\"relative_key\"");
}

TEST(EmbeddingSettings, AnUnknownKeyIsRefusedOrNamed) {
  SettingJudge judge;
  judge.judge("config.json", "config.json", "soft_cap", "3", Unknown::warned);
  judge.judge("1_Pooling/config.json", "module Pooling", "soft_cap", "3", Unknown::refused);
  ASSERT_EQ(judge.all_unknown().size(), 1U);
  ASSERT_EQ(judge.all_refused().size(), 1U);
  EXPECT_EQ(core::parse_odd_settings(judge.refused()), judge.all_refused());
  EXPECT_EQ(core::parse_odd_settings("[[\"a\"]]").size(), 0U);
}

}  // namespace
}  // namespace weighbridge::huggingface

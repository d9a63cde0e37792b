// SPDX-License-Identifier: Apache-2.0
// The steps of a tokenizer.json: what is read, and what is refused by name.
#include "tokenizers/text_steps.h"

#include <gtest/gtest.h>

namespace weighbridge::tokenizers {
namespace {

using Refused = std::vector<RefusedSetting>;

std::vector<std::string> keys(const Refused& refused) {
  std::vector<std::string> out;
  for (const RefusedSetting& each : refused) out.push_back(each.key);
  return out;
}

TEST(TextSteps, ReadsTheStepsOfASequence) {
  Refused refused;
  const std::string prepend = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"x "}]})";
  const std::string bert = R"({"type":"BertNormalizer","clean_text":false,"handle_chinese_chars":false,)"
                           R"("strip_accents":true,"lowercase":false})";
  const std::string replace = R"({"type":"Replace","pattern":{"String":"a"},"content":""})";
  const std::string strip = R"({"type":"Strip","strip_left":false,"strip_right":true})";
  const auto steps = read_normalizer(R"({"type":"Sequence","normalizers":[{"type":"NFC"},)" + prepend + "," + bert +
                                         "," + replace + "," + strip + "]}",
                                     refused);
  EXPECT_TRUE(refused.empty());
  ASSERT_EQ(steps.size(), 5U);
  EXPECT_EQ(steps[0].kind, TextStep::Kind::nfc);
  EXPECT_EQ(steps[1].to, "x ");
  EXPECT_FALSE(steps[2].clean || steps[2].space_chinese || steps[2].lower);
  EXPECT_EQ(steps[2].accents, true);
  EXPECT_EQ(steps[3].from, "a");
  EXPECT_EQ(steps[3].to, "");
  EXPECT_FALSE(steps[4].left);
  EXPECT_TRUE(read_normalizer("null", refused).empty() && refused.empty());
}

TEST(TextSteps, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"Precompiled","precompiled_charsmap":"AA=="})", "normalizer.type"},
      {R"({"type":"NFKC"})", "normalizer.type"},
      {R"({"type":"Replace","pattern":{"Regex":"a+"},"content":"b"})", "normalizer.pattern"},
      {R"({"type":"Replace","content":"b"})", "normalizer.pattern"},
      {R"({"type":"Lowercase","locale":"tr"})", "normalizer.locale"},
      {R"({"type":"BertNormalizer","lowercase":1})", "normalizer.lowercase"},
      {R"({"type":"BertNormalizer","lowercase":true,"lowercase":false})", "normalizer"},
      {R"({"type":"Sequence","normalizers":3})", "normalizer.normalizers"},
      {R"({"type":"Sequence","steps":[]})", "normalizer.steps"},
      {R"([])", "normalizer"},
      {R"({"lowercase":true})", "normalizer"}};
  for (const auto& [json, key] : cases) {
    Refused refused;
    EXPECT_TRUE(read_normalizer(json, refused).empty()) << json;
    EXPECT_EQ(keys(refused), std::vector<std::string>{key}) << json;
  }
  for (const auto& [json, key] : {std::pair{R"({"type":"Digits","individual_digits":true})", "pre_tokenizer.type"},
                                  {R"({"type":"Punctuation","behavior":"Other"})", "pre_tokenizer.behavior"},
                                  {R"({"type":"CharDelimiterSplit","delimiter":"ab"})", "pre_tokenizer.delimiter"}}) {
    Refused refused;
    EXPECT_TRUE(read_pre_tokenizer(json, refused).empty()) << json;
    EXPECT_EQ(keys(refused), std::vector<std::string>{key}) << json;
  }
}

TEST(TextSteps, BoundsSequencesWithinSequences) {
  std::string json = R"({"type":"NFC"})";
  for (int i = 0; i < 20; ++i) json = R"({"type":"Sequence","normalizers":[)" + json + "]}";
  Refused refused;
  EXPECT_TRUE(read_normalizer(json, refused).empty());
  EXPECT_EQ(refused.size(), 1U);
}

TEST(TextSteps, ReadsTheFrameOfAText) {
  Refused refused;
  const char* const cls_sep = R"({"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]})";
  EXPECT_EQ(read_post_processor(cls_sep, refused), (TextFrame{{2}, {3}}));
  EXPECT_EQ(read_post_processor("null", refused), TextFrame{});
  const std::string tokens = R"("special_tokens":{"[X]":{"id":"[X]","ids":[5,6],"tokens":["a","b"]}}})";
  EXPECT_EQ(read_post_processor(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},
                                   {"SpecialToken":{"id":"[X]","type_id":0}}],"pair":[],)" +
                                    tokens,
                                refused),
            (TextFrame{{}, {5, 6}}));
  EXPECT_TRUE(refused.empty());
  for (const char* const single :
       {R"([{"SpecialToken":{"id":"[X]","type_id":0}}])", R"([{"Sequence":{"id":"A","type_id":1}}])",
        R"([{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"A","type_id":0}}])", R"(["$A"])", "7"}) {
    refused.clear();
    read_post_processor(R"({"type":"TemplateProcessing","single":)" + std::string(single) + "," + tokens, refused);
    EXPECT_EQ(keys(refused), std::vector<std::string>{"post_processor.single"}) << single;
  }
  refused.clear();
  read_post_processor(R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[Y]","type_id":0}},
                         {"Sequence":{"id":"A","type_id":0}}],)" +
                          tokens,
                      refused);
  EXPECT_EQ(keys(refused), std::vector<std::string>{"post_processor.special_tokens"});
}

}  // namespace
}  // namespace weighbridge::tokenizers

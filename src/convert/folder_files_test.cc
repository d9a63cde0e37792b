// SPDX-License-Identifier: Apache-2.0
// The files of a Hugging Face folder besides the weights: copied into another folder, named as losses elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/tiny_folders.h"
#include "weighbridge/convert.h"
#include "weighbridge/verify.h"
#include "weighbridge/view.h"

namespace weighbridge::huggingface {
namespace {

using testing::Files;
using testing::in_memory;

Model read(const Files& files) {
  Verdict verdict = verify(in_memory(files), {}, {.format = "hf"});
  for (const Finding& finding : verdict.report.findings())
    if (finding.severity != Severity::warning) ADD_FAILURE() << finding.rule << ": " << finding.message;
  return std::move(verdict.model);
}

// The files of the folder that the plan writes.
Files written_by(const Plan& plan) {
  const test::TemporaryFolder folder;
  plan.execute(folder.path());
  Files out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file())
      out[entry.path().lexically_relative(folder.path()).string()] = test::read_file(entry.path().string());
  return out;
}

// Files of the folder beside those that are read.
Files with_more(Files more) {
  Files out = testing::tiny();
  out.merge(more);
  return out;
}

std::vector<std::string> lost(const std::vector<Item>& losses, LossKind kind = LossKind::file) {
  std::vector<std::string> out;
  for (const Item& loss : losses)
    if (loss.kind == kind) out.push_back(loss.subject.substr(7, loss.subject.size() - 9));
  return out;
}

TEST(FolderFiles, FilesThatAreNotUnderstoodAreCopied) {
  const Files files = with_more({{"special_tokens_map.json", "{}"},
                                 {"README.md", "# hello"},
                                 {"empty", ""},
                                 {"generation_config.json", "{\"a\":1}"}});
  const Plan done = plan(read(files), "hf");
  EXPECT_TRUE(done.losses().empty());
  const Files written = written_by(done);
  for (const auto& [name, bytes] : files) {
    if (name != "model.safetensors") {
      EXPECT_EQ(written.at(name), bytes) << name;
    }
  }
}

TEST(FolderFiles, ATokenizerThatIsNotReadIsCopied) {
  Files files = testing::tiny_llama();
  files["config.json"] = R"({"model_type":"gpt2"})";
  const Verdict verdict = verify(in_memory(files), {}, {.format = "hf"});
  ASSERT_EQ(verdict.report.findings().size(), 1U);
  EXPECT_EQ(verdict.report.findings()[0].rule, "hf/tokenizer-kind");
  const Plan done = plan(verdict.model, "hf");
  EXPECT_TRUE(done.losses().empty());
  EXPECT_EQ(written_by(done).at("tokenizer.json"), files.at("tokenizer.json"));
}

TEST(FolderFiles, ALlamasTokenizerIsCopied) {
  const Files files =
      testing::tiny_llama({.model = R"("byte_fallback":true,"ignore_merges":true,"unk_token":"<unk>")"});
  const Model model = read(files);
  ASSERT_NE(model.attribute("tokenizer_unheld"), nullptr);
  const Plan done = plan(model, "hf");
  EXPECT_TRUE(done.losses().empty());
  const Files written = written_by(done);
  EXPECT_EQ(written.at("tokenizer.json"), files.at("tokenizer.json"));
  EXPECT_EQ(*read(written).tokenizer(), *model.tokenizer());
}

TEST(FolderFiles, WhatIsNotTheModelsIsLeftOutByName) {
  const Model model = read(with_more({{".gitattributes", ""},
                                      {"modeling.py", ""},
                                      {"MODEL.PY", ""},
                                      {"pytorch_model.bin", ""},
                                      {"old.safetensors", ""},
                                      {"tf_model.h5", ""},
                                      {"LICENSE", ""}}));
  const Plan done = plan(model, "hf");
  EXPECT_EQ(lost(done.losses()), (std::vector<std::string>{".gitattributes", "MODEL.PY", "modeling.py",
                                                           "old.safetensors", "pytorch_model.bin", "tf_model.h5"}));
  EXPECT_EQ(written_by(done).size(), testing::tiny().size() + 1);
}

TEST(FolderFiles, AFolderThatIsNoModuleIsNamedOnce) {
  const Model model =
      read(with_more({{"onnx/model.onnx", ""}, {"onnx/quantized/model.onnx", ""}, {"1_Pooling/README.md", ""}}));
  for (const char* const to : {"hf", "zt"}) {
    const Plan done = plan(model, to, {.allow = {LossKind::tokenizer, LossKind::attribute}});
    const auto names = lost(done.losses());
    EXPECT_EQ(std::ranges::count(names, "onnx/"), 1) << to;
    EXPECT_EQ(std::ranges::count(names, "1_Pooling/"), 0) << to;
  }
}

TEST(FolderFiles, AnotherTokenizerReplacesItsFiles) {
  const Model model = read(with_more({{"special_tokens_map.json", "{}"}, {"README.md", ""}}));
  const Plan done = plan(view(model, {.set = {{"do_lower_case", "false"}}}), "hf");
  EXPECT_EQ(lost(done.losses()),
            (std::vector<std::string>{"special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"}));
  const Files written = written_by(done);
  EXPECT_FALSE(written.contains("tokenizer.json"));
  EXPECT_TRUE(written.contains("README.md"));
  const Model again = read(written);
  EXPECT_EQ(again.attribute("do_lower_case")->as_text(), "false");
}

TEST(FolderFiles, OtherSettingsReplaceTheirFiles) {
  const Model model = read(testing::tiny());
  const Plan done = plan(view(model, {.set = {{"max_seq_length", "7"}}}), "hf");
  EXPECT_TRUE(done.losses().empty());
  const Files written = written_by(done);
  EXPECT_NE(written.at("sentence_bert_config.json").find("7"), std::string::npos);
  EXPECT_EQ(written.at("tokenizer.json"), testing::tiny().at("tokenizer.json"));
}

// A dense layer after the pooling changes every embedding.
TEST(FolderFiles, TheWeightsOfAModuleAreAPartOfTheModel) {
  Files files = testing::tiny();
  files["modules.json"] = R"([{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},)"
                          R"({"idx":1,"path":"2_Dense","type":"sentence_transformers.models.Dense"},)"
                          R"({"idx":2,"path":"../out","type":"sentence_transformers.models.Dense"}])";
  files["2_Dense/config.json"] = "{}";
  files["2_Dense/model.safetensors"] = "weights";
  const Model model = read(files);
  const Plan done = plan(model, "hf");
  EXPECT_TRUE(done.losses().empty());
  const Files written = written_by(done);
  EXPECT_EQ(written.at("modules.json"), files.at("modules.json"));
  EXPECT_EQ(written.at("2_Dense/model.safetensors"), "weights");

  const Plan single = plan(model, "embd");
  EXPECT_EQ(lost(single.losses(), LossKind::unsupported), std::vector<std::string>{"2_Dense/model.safetensors"});
  EXPECT_FALSE(single.possible());
  files.erase("2_Dense/model.safetensors");
  files["2_Dense/pytorch_model.bin"] = "";
  EXPECT_FALSE(plan(read(files), "hf").possible());
  EXPECT_TRUE(plan(read(files), "hf", {.allow = {LossKind::unsupported}}).possible());
}

TEST(FolderFiles, ASingleFileNamesWhatItLosesAndRefusesNothing) {
  const Model model = read(with_more({{"README.md", ""}, {"special_tokens_map.json", "{}"}}));
  for (const char* const to : {"embd", "zt", "safetensors"}) {
    const Plan plan = weighbridge::plan(model, to, {.allow = {LossKind::tokenizer, LossKind::attribute}});
    EXPECT_EQ(lost(plan.losses()), (std::vector<std::string>{"README.md", "special_tokens_map.json", "tokenizer.json",
                                                             "tokenizer_config.json"}))
        << to;
    for (const Item& refused : plan.refused()) EXPECT_NE(refused.kind, LossKind::file) << to;
  }
}

}  // namespace
}  // namespace weighbridge::huggingface

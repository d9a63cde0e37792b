// SPDX-License-Identifier: Apache-2.0
// Split GGUF: opened by the first file, by the folder and as a single file, written as a folder, and the limits on all
// files together.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"
#include "weighbridge/view.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using test::rules_of;
using Rules = std::vector<std::string>;

const std::string kFirst = "model-00001-of-00003.gguf", kSecond = "model-00002-of-00003.gguf",
                  kThird = "model-00003-of-00003.gguf";

Model three_tensors() {
  Builder builder;
  const auto bytes = std::make_shared<const std::vector<float>>(16, 0.5F);
  for (const char* name : {"a", "b", "c"})
    builder.tensor(name, DType::f32, {4, 4}, {std::as_bytes(std::span(*bytes)), bytes});
  builder.attribute("general.name", Value::text("three"));
  return builder.build();
}

// The three files in a folder.
void write_parts(const std::string& folder) {
  Options options;
  options.shards.max_size = 64;
  plan(three_tensors(), "gguf", options).execute(folder + "/");
}

TEST(SplitGguf, OpensByItsFirstFileAndByItsFolder) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  for (const std::string& path : {root / "out", root / ("out/" + kFirst)}) {
    const Verdict verdict = verify(path);
    EXPECT_EQ(rules_of(verdict.report), Rules{});
    EXPECT_EQ(verdict.format, "gguf");
    ASSERT_EQ(verdict.model.size(), 3U);
    const char* const names[] = {"a", "b", "c"};
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(verdict.model.name(i), names[i]);
    EXPECT_EQ(verdict.model.sources().size(), 3U);
    ASSERT_EQ(verdict.model.attributes().size(), 1U);  // split.no and the like are each file's own
    EXPECT_EQ(verdict.model.attribute("general.name")->as_text(), "three");
    EXPECT_EQ(verdict.model["c"].to_dense().size, 64U);
  }
}

// Another than the first was once opened as a model of its own tensors.
TEST(SplitGguf, AnyFileOpensTheWholeModel) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  for (const std::string& name : {kSecond, kThird}) {
    const Verdict verdict = verify(root / ("out/" + name));
    EXPECT_EQ(rules_of(verdict.report), Rules{});
    EXPECT_EQ(verdict.model.size(), 3U);
    EXPECT_EQ(verdict.model.attribute("general.name")->as_text(), "three");
    EXPECT_EQ(open(root / ("out/" + name))["a"].to_dense().size, 64U);
  }
}

// Half of a model is not a model: verify says so, open reads what is there, and a plan needs consent.
TEST(SplitGguf, AFileWithoutTheOthersIsOnlyAPart) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  fs::create_directory(root / "alone");
  fs::copy(root / ("out/" + kSecond), root / ("alone/" + kSecond));
  fs::copy(root / ("out/" + kSecond), root / "alone/renamed.gguf");
  for (const char* name : {kSecond.c_str(), "renamed.gguf"}) {
    const std::string path = root / (std::string("alone/") + name);
    SCOPED_TRACE(path);
    const Verdict alone = verify(path);
    EXPECT_EQ(rules_of(alone.report), Rules{"gguf/part-missing"});
    EXPECT_FALSE(alone.report.valid());
    Report report;
    const auto model = open(path, report);
    ASSERT_TRUE(model.has_value());
    EXPECT_EQ(model->size(), 1U);
    ASSERT_EQ(rules_of(report), Rules{"gguf/part-missing"});
    EXPECT_EQ(report.findings()[0].severity, Severity::warning);
    const Plan refused = plan(*model, "gguf");
    ASSERT_EQ(refused.refused().size(), 1U);
    EXPECT_EQ(refused.refused()[0].kind, LossKind::part);
    EXPECT_THROW(refused.execute(root / "half.gguf"), Error);
    plan(*model, "gguf", {.allow = {LossKind::part}, .replace = true}).execute(root / "half.gguf");
    // The output is no part of anything.
    const Verdict half = verify(root / "half.gguf");
    EXPECT_EQ(rules_of(half.report), Rules{});
    EXPECT_EQ(half.model.attribute("split.count"), nullptr);
  }
  EXPECT_NE(verify(root / ("alone/" + kSecond)).report.findings()[0].message.find(kFirst), std::string::npos);
  EXPECT_EQ(open(root / "alone").size(), 1U);
  // A view is as incomplete as what it is of.
  ViewOptions all;
  all.set = {{"general.name", "one of three"}};
  EXPECT_EQ(plan(view(open(root / ("alone/" + kSecond)), all), "safetensors").refused()[0].kind, LossKind::part);
}

TEST(SplitGguf, AMissingFileIsOneFinding) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  fs::remove(root / ("out/" + kSecond));
  fs::remove(root / ("out/" + kThird));
  const Verdict verdict = verify(root / "out");
  EXPECT_EQ(rules_of(verdict.report), Rules{"gguf/part-missing"});
  EXPECT_NE(verdict.report.findings()[0].message.find(kSecond), std::string::npos);
}

TEST(SplitGguf, StraysAreWarnings) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  const std::string stray = "model-00002-of-00009.gguf";
  fs::copy(root / ("out/" + kSecond), root / ("out/" + stray));
  const Verdict verdict = verify(root / "out");
  EXPECT_EQ(rules_of(verdict.report), Rules{"gguf/part-stray"});
  EXPECT_NE(verdict.report.findings()[0].message.find(stray), std::string::npos);
  EXPECT_TRUE(verdict.report.valid());
}

TEST(SplitGguf, AFileThatLeadsOutIsRefused) {
  const test::TemporaryFolder root;
  write_parts(root / "in");
  fs::rename(root / ("in/" + kSecond), root / "outside");
  fs::create_symlink("../outside", root / ("in/" + kSecond));
  for (const std::string& path : {root / "in", root / ("in/" + kFirst)}) {
    EXPECT_EQ(rules_of(verify(path).report), Rules{"gguf/part-link"});
    EXPECT_EQ(test::thrown([&] { open(path); }).rule, "gguf/part-link");
  }
}

TEST(SplitGguf, AFolderWithTwoModelsNamesThem) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  fs::copy(root / ("out/" + kFirst), root / "out/other-00001-of-00003.gguf");
  const Finding finding = test::thrown([&] { open(root / "out"); });
  EXPECT_EQ(finding.rule, "misuse/not-a-file");
  EXPECT_NE(finding.message.find(kFirst), std::string::npos) << finding.message;
  EXPECT_EQ(open(root / ("out/" + kFirst)).size(), 3U);
}

TEST(SplitGguf, LimitsHoldForAllFilesTogether) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  Context context;
  context.limits.tensors = 2;
  EXPECT_EQ(rules_of(verify(root / "out", context).report), Rules{"limit/tensors"});
  context.limits.tensors = 3;
  EXPECT_EQ(rules_of(verify(root / "out", context).report), Rules{});
}

TEST(SplitGguf, FewerFilesReplaceThoseOfBefore) {
  const test::TemporaryFolder root;
  write_parts(root / "out");
  Options options;
  options.replace = true;
  options.shards.max_size = 1000;
  plan(three_tensors(), "gguf", options).execute(root / "out/");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(root / "out")) left.push_back(entry.path().filename().string());
  EXPECT_EQ(left, std::vector<std::string>{"model.gguf"});
}

}  // namespace
}  // namespace weighbridge

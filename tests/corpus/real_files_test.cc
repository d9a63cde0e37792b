// SPDX-License-Identifier: Apache-2.0
// Tests files of other tools. They are not part of the repository; without them these tests are skipped.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/writing/layout.h"
#include "registry/registry.h"
#include "support/test_data.h"
#include "support/thrown.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge::test {
namespace {

TEST(RealSafetensors, ThoseOfOtherPeoplesTestSuitesAreValidButOne) {
  WB_REQUIRE_TEST_DATA(folder, "safetensors");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".safetensors") continue;
    SCOPED_TRACE(path);
    ++files;
    const Verdict verdict = verify(path);
    EXPECT_EQ(verdict.format, "safetensors");
    const bool abusive = entry.path().filename().string().starts_with("bad_");
    EXPECT_EQ(verdict.report.valid(), !abusive);
    if (abusive) {
      EXPECT_EQ(thrown([&] { open(path); }), *verdict.report.first_error());
    } else {
      EXPECT_EQ(verdict.report.total(), 0U);
      EXPECT_EQ(open(path).size(), verdict.model.size());
    }
  }
  EXPECT_EQ(files, 5);
}

TEST(RealSafetensors, TinyBertOpensWithItsTensorsInTheOrderOfTheFile) {
  WB_REQUIRE_TEST_DATA(path, "tiny_bert/model.safetensors");
  const Verdict verdict = verify(path);
  EXPECT_EQ(verdict.report.total(), 0U);
  const Model model = open(path);
  ASSERT_GT(model.size(), 0U);
  ASSERT_TRUE(model.find("embeddings.word_embeddings.weight").has_value());
  EXPECT_EQ(model["embeddings.word_embeddings.weight"].dtype(), DType::f32);
  EXPECT_EQ(model.name(0), "embeddings.LayerNorm.bias");
  EXPECT_TRUE(model.attributes().empty());
}

TEST(RealSafetensors, TinyBertIsWrittenWithTheHeaderThatItHad) {
  WB_REQUIRE_TEST_DATA(path, "tiny_bert/model.safetensors");
  const Model model = open(path);
  const core::WriteLayout made = registry::find("safetensors")->layout(model, {}, {});
  EXPECT_TRUE(made.blockers.empty() && made.losses.empty() && made.changes.empty());
  std::string head(made.head.size(), '\0');
  model.sources()[0]->read_at(0, std::as_writable_bytes(std::span(head)));
  EXPECT_EQ(made.head, head);
  EXPECT_EQ(made.size, model.sources()[0]->size());
  std::uint64_t at = made.head.size();
  for (const core::Payload& payload : made.payloads) {
    EXPECT_EQ(payload.tensor.main().extent()->offset, at);
    at += payload.stored_size;
  }
}

// The format's own tests check their content.
TEST(RealZtensor, FilesOfThe01LineAreKnownByTheirContent) {
  WB_REQUIRE_TEST_DATA(folder, "ztensor");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("zt01-")) continue;
    SCOPED_TRACE(entry.path());
    ++files;
    const Verdict verdict = verify(entry.path().string());
    EXPECT_EQ(verdict.format, "zt0");
    EXPECT_TRUE(verdict.report.valid());
    EXPECT_EQ(open(entry.path().string()).size(), verdict.model.size());
  }
  EXPECT_EQ(files, 7);
}

}  // namespace
}  // namespace weighbridge::test

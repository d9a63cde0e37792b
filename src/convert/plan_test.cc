// SPDX-License-Identifier: Apache-2.0
// What a plan refuses and how it says so: options that a container lacks, losses nobody allowed, outputs whose format
// or whose neighbors are not as they should be.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "convert/testing.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;
using test::thrown;
using Folder = test::TemporaryFolder;
using Names = std::set<std::string>;

Model bytes_called(const std::string& name) {
  Builder builder;
  builder.tensor(name, DType::i8, {4}, pattern(4));
  return builder.build();
}

Item item(LossKind kind, std::string subject, std::string from = {}, std::string to = {}) {
  return {kind, std::move(subject), std::move(from), std::move(to)};
}

TEST(Plan, AnOptionOfAnotherContainerIsRefusedWithTheOnesThatHaveIt) {
  const Model model = bytes_called("w");
  const auto said = [&](std::string_view format, const Options& options) {
    const Finding finding = thrown([&] { plan(model, format, options); });
    EXPECT_EQ(finding.rule, "misuse/option");
    return finding.message;
  };
  EXPECT_EQ(said("zt", {.keep_gqa = true}), "the format zt has no keep-gqa, slm has");
  EXPECT_EQ(said("safetensors", {.quantize_norms = true}), "the format safetensors has no quantize-norms, slm has");
  EXPECT_EQ(said("zt", {.omit_layout_field = true}), "the format zt has no omit-layout-field, zt0 has");
  EXPECT_EQ(said("slm", {.created_at = "now"}), "the format slm has no created-at, embd has, hf has");
  EXPECT_EQ(said("zt", {.model_name = "m"}), "the format zt has no model-name, embd has, hf has");
  EXPECT_EQ(said("stb", {.model_version = "1"}), "the format stb has no model-version, embd has, hf has");
  EXPECT_TRUE(plan(model, "zt0", {.omit_layout_field = true}).possible());
}

TEST(Plan, ATimeOfMakingIsAnIso8601TimeForEachFormatThatHasOne) {
  for (const char* const format : {"embd", "hf"}) {
    const Finding finding = thrown([&] { plan(bytes_called("w"), format, {.created_at = "to\nday"}); });
    EXPECT_EQ(finding.rule, "misuse/created-at") << format;
    EXPECT_EQ(finding.message, "'to\\nday' is not an ISO 8601 time such as 2025-01-16T12:00:00Z") << format;
    EXPECT_NO_THROW(plan(bytes_called("w"), format, {.created_at = "2026-05-04T03:02:01Z"})) << format;
  }
}

TEST(Plan, AFormatThatIsOnlyReadIsNoTarget) {
  const Finding finding = thrown([] { plan(bytes_called("w"), "llama2c"); });
  EXPECT_EQ(finding.rule, "misuse/read-only-format");
  EXPECT_EQ(finding.message, "the format llama2c can be read, not written");
}

TEST(Plan, AQuantizationThatTheTargetCannotMakeIsRefused) {
  for (const char* const format : {"zt", "safetensors"})
    EXPECT_EQ(thrown([&] { plan(bytes_called("w"), format, {.quantize = "q8_0"}); }).rule, "misuse/quantise") << format;
}

TEST(Plan, CastingAndQuantizingAreTheConsentToTheirOwnLossesOnly) {
  Plan p;
  p.losses = {item(LossKind::dtype, "a"), item(LossKind::precision, "b"), item(LossKind::shape, "c")};
  EXPECT_EQ(p.refused(), p.losses);
  const std::vector<Item> shape{item(LossKind::shape, "c")};
  p.options.cast = DType::f16;
  EXPECT_EQ(p.refused(), shape);
  p.options = {.quantize = "q8_0"};
  EXPECT_EQ(p.refused(), shape);
  p.options.allow = {LossKind::shape};
  EXPECT_TRUE(p.possible());
}

TEST(Plan, NamesTenOfTheLossesThatItRefusesAndCountsTheRest) {
  const Folder folder;
  Plan p = plan(bytes_called("w"), "zt");
  p.losses = {item(LossKind::attribute, "a\n"), item(LossKind::name, "b", "b"), item(LossKind::dtype, "c", "", "u8")};
  const auto said = [&] {
    const Finding finding = thrown([&] { p.execute(folder / "out.zt"); });
    EXPECT_EQ(finding.rule, "misuse/loss");
    return finding.message;
  };
  const std::string begin = "writing zt would lose what was not allowed to be lost";
  EXPECT_EQ(said(), begin + R"(: a\n (attribute); b (name), b; c (dtype) becomes u8)");
  p.losses.assign(10, item(LossKind::alias, "t"));
  EXPECT_EQ(said().find("more"), std::string::npos);
  p.losses.assign(12, item(LossKind::alias, "t"));
  const std::string message = said();
  EXPECT_TRUE(message.ends_with("; t (alias); and 2 more")) << message;
  EXPECT_EQ(folder.entries(), Names{});
}

TEST(Save, TheExtensionCountsInAnyCaseAndOnlyThatOfTheLastName) {
  const Folder folder;
  save(bytes_called("w"), folder / "a.ZT");
  save(bytes_called("w"), folder / "b.SafeTensors");
  const Model zt = open(folder / "a.ZT");
  EXPECT_EQ(zt.format(), "zt");
  const Model safetensors = open(folder / "b.SafeTensors");
  EXPECT_EQ(safetensors.format(), "safetensors");
  for (const char* const name : {"zt", "c.z_t", "d.", "e.zt0"})
    EXPECT_EQ(thrown([&] { save(bytes_called("w"), folder / name); }).rule, "misuse/unknown-extension") << name;
  EXPECT_EQ(thrown([] { save(bytes_called("w"), "noextension"); }).rule, "misuse/unknown-extension");
  EXPECT_EQ(folder.entries(), (Names{"a.ZT", "b.SafeTensors"}));
}

TEST(Save, APathThatEndsInASlashIsAHuggingFaceFolder) {
  const Folder folder;
  save(bytes_called("w"), folder / "out.zt/");
  const Model weights = open(folder / "out.zt/model.safetensors");
  EXPECT_EQ(weights.format(), "safetensors");
  EXPECT_EQ(open(folder / "out.zt").size(), 1U);
}

// A file of ids alone needs no sidecar, and one that lies there speaks of another file.
TEST(Save, ASidecarOfAnOldFileStandsInTheWayUnlessItMayGo) {
  const Folder folder;
  test::write_file(folder / "a.khm.json", "old");
  const Finding finding = thrown([&] { save(bytes_called("0"), folder / "a.stb"); });
  EXPECT_EQ(finding.rule, "misuse/output-exists");
  EXPECT_EQ(finding.message, "'" + (folder / "a.khm.json") + "' exists and would speak of the new file");
  EXPECT_EQ(folder.entries(), Names{"a.khm.json"});
  save(bytes_called("0"), folder / "a.stb", {.replace = true});
  EXPECT_EQ(folder.entries(), Names{"a.stb"});
}

TEST(Save, ANameThatIsAllExtensionKeepsItBeforeTheSidecars) {
  const Folder folder;
  save(bytes_called("w"), folder / ".stb");
  EXPECT_EQ(folder.entries(), (Names{".stb", ".stb.khm.json"}));
}

}  // namespace
}  // namespace weighbridge

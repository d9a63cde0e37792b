// SPDX-License-Identifier: Apache-2.0
// Conversion of views: the output keeps the source's container settings, tensors outside the view are neither read nor
// judged, and tensors that cannot be interpreted are dropped by name.
#include "weighbridge/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/convert_testing.h"
#include "support/items.h"
#include "support/sample_models.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;
using test::read_file;
using test::text_of;
using test::thrown;
using test::write_file;
using Folder = test::TemporaryFolder;

// Three tensors in a .zt of version 1.2, compressed, with digests.
std::string saved(const Folder& folder) {
  Builder builder;
  builder.attribute("typed", Value::integer(std::uint64_t{7}));
  for (const char* const name : {"a", "b", "c"})
    builder.tensor(name, DType::u8, {5000}, pattern(5000, static_cast<unsigned char>(*name)));
  save(builder.build(), folder / "in.zt", {.encoding = "zstd", .digest = "sha256", .version = "1.2"});
  return folder / "in.zt";
}

TEST(ConvertView, KeepsWhatAZtSaysOfItself) {
  const Folder folder;
  const Model in = open(saved(folder));
  const Plan made = plan(view(in, {.without = {"b"}, .rename = {{"c", "0"}}, .set = {{"k", "v"}}}), "zt");
  EXPECT_EQ(text_of(made.losses()) + text_of(made.changes()), "");
  EXPECT_EQ(made.from(), "zt");
  EXPECT_EQ(made.tensors(), 2U);
  made.execute(folder / "out.zt");
  const Verdict verdict = verify(folder / "out.zt");
  EXPECT_TRUE(verdict.report.valid());
  const Model& out = verdict.model;
  EXPECT_EQ(out.version(), in.version());
  const auto attributes = out.attributes();
  EXPECT_EQ(attributes.find("typed")->type(), DType::u64);
  EXPECT_EQ(attributes.find("k")->as_text(), "v");
  ASSERT_EQ(out.size(), 2U);
  for (const auto& [now, before] : {std::pair("a", "a"), std::pair("0", "c")}) {
    const Tensor one = out[now], other = in[before];
    const Part part = one.main(), old = other.main();
    EXPECT_EQ(part.encoding(), Encoding::zstd);
    EXPECT_EQ(part.digest(), old.digest()) << now;
    EXPECT_TRUE(std::ranges::equal(part.stored().span, old.stored().span)) << now;
  }
}

TEST(ConvertView, OfAWeightsFileIsAWeightsFile) {
  const Folder folder;
  save(test::bert_model({16, 1, 2, 32, 12, 8}, 1).build(), folder / "in.weights");
  const Model in = open(folder / "in.weights");
  save(view(in, {.set = {{"model_name", "another"}}}), folder / "out.weights");
  const Verdict verdict = verify(folder / "out.weights");
  EXPECT_TRUE(verdict.report.valid());
  const auto attributes = verdict.model.attributes();
  EXPECT_EQ(attributes.find("model_name")->as_text(), "another");
  EXPECT_EQ(verdict.model.size(), in.size());
}

// Tensors outside the view are not read: a damaged one does not block the others, and an intact one does not excuse
// damage.
TEST(ConvertView, ChecksWhatItTakes) {
  const Folder folder;
  const std::string path = saved(folder);
  std::uint64_t at = 0;
  {
    const Model in = open(path);
    const Tensor b = in["b"];
    at = b.main().extent()->offset + b.main().extent()->length / 2;
  }
  std::string bytes = read_file(path);
  bytes[static_cast<std::size_t>(at)] = static_cast<char>(bytes[static_cast<std::size_t>(at)] ^ 0x55);
  write_file(path, bytes);
  const Model in = open(path);
  save(view(in, {.without = {"b"}}), folder / "sound.safetensors", {.allow = test::every_loss()});
  EXPECT_EQ(open(folder / "sound.safetensors").size(), 2U);
  const Plan bad = plan(view(in, {.only = {"b"}}), "safetensors", {.allow = test::every_loss()});
  EXPECT_EQ(thrown([&] { bad.execute(folder / "bad.safetensors"); }).kind, Kind::malformed);
  EXPECT_EQ(thrown([&] { save(in, folder / "bad.safetensors", {.allow = test::every_loss()}); }).kind, Kind::malformed);
}

TEST(ConvertView, IsAppendedAndDoesNotGrow) {
  const Folder folder;
  const Model in = open(saved(folder));
  Builder builder;
  builder.tensor("a", DType::u8, {3}, pattern(3));
  builder.tensor("x", DType::u8, {3}, pattern(3));
  const Model more = builder.build();
  EXPECT_FALSE(plan_append(in, more).possible());
  plan_append(in, view(more, {.rename = {{"a", "d"}}})).execute(folder / "grown.zt");
  EXPECT_EQ(open(folder / "grown.zt").size(), 5U);
  const Finding finding = thrown([&] { plan_append(view(in, {.only = {"a"}}), more); });
  EXPECT_EQ(finding.rule, "misuse/append");
  EXPECT_NE(finding.message.find("a view"), std::string::npos) << finding.message;
}

// A .zt with one tensor of a known dtype and one of an unknown dtype.
std::string with_a_stranger(const Folder& folder) {
  Builder builder;
  builder.tensor("known", DType::f32, {2}, pattern(8));
  builder.tensor("strange", DType::f64, {2}, pattern(16));
  save(builder.build(), folder / "strange.zt");
  std::string bytes = read_file(folder / "strange.zt");
  bytes.replace(bytes.find("f64"), 3, "x64");
  write_file(folder / "strange.zt", bytes);
  return folder / "strange.zt";
}

TEST(Unsupported, GoesOverVerbatimWhereTheContainerHasAPlaceForIt) {
  const Folder folder;
  const Model in = open(with_a_stranger(folder));
  const Tensor strange = in["strange"];
  ASSERT_NE(strange.unsupported(), nullptr);
  const Plan made = plan(view(in, {.rename = {{"strange", "s"}}}), "zt");
  EXPECT_TRUE(made.possible());
  made.execute(folder / "out.zt");
  const Model out = open(folder / "out.zt");
  const Tensor same = out["s"];
  EXPECT_EQ(same.type_name(), "x64");
}

TEST(Unsupported, IsALossThatTheConsentLeavesOutForEachWriter) {
  const Folder folder;
  const Model bare = open(with_a_stranger(folder));
  for (const FormatInfo& format : formats()) {
    // A folder needs a config.json that says something.
    const Model in = format.folder ? view(bare, {.set = {{"hf.model_type", "x"}}}) : bare;
    if (!format.writes || format.name == "zt" || format.name == "embd" || format.name == "slm" ||
        format.name == "npy")  // which has no place for the name either
      continue;
    const std::string path = folder / ("out." + std::string(format.name));
    const Plan refused = plan(in, format.name);
    EXPECT_EQ(text_of(refused.blockers()), "") << format.name;
    ASSERT_FALSE(refused.losses().empty()) << format.name;
    const Item& loss = refused.losses()[0];
    EXPECT_EQ(loss.kind, LossKind::unsupported) << format.name;
    EXPECT_EQ(loss.subject, "tensors[\"strange\"]") << format.name;
    EXPECT_EQ(loss.from, "x64") << format.name;
    EXPECT_TRUE(loss.to.starts_with("left out: zTensor 1.1 does not have a component's dtype")) << loss.to;
    EXPECT_EQ(thrown([&] { refused.execute(path); }).rule, "misuse/loss") << format.name;
    const Plan allowed = plan(in, format.name, {.allow = {LossKind::unsupported}});
    EXPECT_EQ(allowed.tensors(), 1U) << format.name;
    allowed.execute(path);
    OpenOptions as;
    if (!format.folder) as.format = std::string(format.name);
    const Model out = open(path, {}, as);
    EXPECT_EQ(out.size(), 1U) << format.name;
    EXPECT_TRUE(out.find("known").has_value()) << format.name;
  }
}

TEST(Unsupported, IsLeftOutBeforeTheRestIsJudged) {
  const Folder folder;
  const Model in = open(with_a_stranger(folder));
  for (const char* const format : {"embd", "slm"}) {
    const Plan made = plan(in, format, {.allow = {LossKind::unsupported}});
    EXPECT_FALSE(made.possible()) << format;
    EXPECT_EQ(text_of(made.blockers()).find("strange"), std::string::npos) << text_of(made.blockers());
  }
}

}  // namespace
}  // namespace weighbridge

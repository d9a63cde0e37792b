// SPDX-License-Identifier: Apache-2.0
// Several models as one: what is taken if two of them have a tensor, a key or a tokenizer, and that conversions check
// each model by the rules of its own format.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/items.h"
#include "support/sample_models.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/hash.h"
#include "weighbridge/join.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"
#include "weighbridge/view.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;
using test::every_loss;
using test::read_file;
using test::text_of;
using test::thrown;
using test::write_file;
using Folder = test::TemporaryFolder;

Model model_of(const std::vector<std::string>& names, std::vector<Value::Entry> attributes = {},
               unsigned char seed = 1) {
  Builder builder;
  for (Value::Entry& each : attributes) builder.attribute(each.first, std::move(each.second));
  for (const std::string& name : names) builder.tensor(name, DType::u8, {300}, pattern(300, seed));
  return builder.build();
}

std::string saved(const Folder& folder, const std::string& name, const Model& model, const Options& options = {}) {
  save(model, folder / name, options);
  return folder / name;
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < model.size(); ++i) out.emplace_back(model.name(i));
  return out;
}

TEST(Join, HasTheTensorsInTheOrderGivenWhateverTheirContainers) {
  const Folder folder;
  const std::vector<Model> models = {open(saved(folder, "b.zt", model_of({"y", "z"}), {.encoding = "zstd"})),
                                     open(saved(folder, "a.safetensors", model_of({"m"}))), model_of({"b"})};
  const Model whole = join(models);
  EXPECT_EQ(names_of(whole), (std::vector<std::string>{"y", "z", "m", "b"}));
  EXPECT_EQ(whole.format(), "zt+safetensors");
  EXPECT_EQ(whole.file_size(), models[0].file_size() + models[1].file_size());
  const Plan made = plan(whole, "safetensors");
  EXPECT_EQ(made.from(), "zt+safetensors");
  made.execute(folder / "out.safetensors");
  EXPECT_EQ(content_digest(open(folder / "out.safetensors")), content_digest(whole));
  EXPECT_EQ(content_digest(whole), content_digest(model_of({"y", "b", "m", "z"})));
}

TEST(Join, OfPiecesIsTheWholeAgain) {
  const Folder folder;
  const Model whole = open(saved(folder, "in.zt", model_of({"a", "b", "c"}, {{"k", Value::text("v")}})));
  const std::vector<Model> pieces = {view(whole, {.only = {"a"}}), view(whole, {.without = {"a"}})};
  const Model again = join(pieces);
  EXPECT_EQ(content_digest(again), content_digest(whole));
  EXPECT_EQ(again.sources().size(), 1U);  // both pieces read one file
  save(again, folder / "out.zt", {.canonical = true});
  save(whole, folder / "same.zt", {.canonical = true});
  EXPECT_EQ(read_file(folder / "out.zt"), read_file(folder / "same.zt"));
}

TEST(Join, OfOneTensorInTwoFilesNamesBoth) {
  const Folder folder;
  const std::vector<Model> models = {open(saved(folder, "a.zt", model_of({"w", "v"}))),
                                     open(saved(folder, "b.zt", model_of({"w", "v"}, {}, 2)))};
  const Finding finding = thrown([&] { join(models); });
  EXPECT_EQ(finding.rule, "misuse/duplicate-tensor");
  EXPECT_NE(finding.message.find(folder / "a.zt"), std::string::npos) << finding.message;
  EXPECT_NE(finding.message.find(folder / "b.zt"), std::string::npos) << finding.message;
  EXPECT_NE(finding.message.find("1 more"), std::string::npos) << finding.message;
  for (const OnDuplicate which : {OnDuplicate::first, OnDuplicate::last}) {
    const Model whole = join(models, which);
    ASSERT_EQ(whole.size(), 2U);
    EXPECT_EQ(content_digest(whole), content_digest(models[which == OnDuplicate::first ? 0 : 1]));
    const Plan made = plan(whole, "zt");
    EXPECT_TRUE(made.possible());
    ASSERT_EQ(made.changes().size(), 2U) << text_of(made.changes());
    EXPECT_NE(made.changes()[0].to.find(which == OnDuplicate::first ? ", not from \"" + (folder / "b.zt")
                                                                    : ", not from \"" + (folder / "a.zt")),
              std::string::npos)
        << made.changes()[0].to;
    EXPECT_EQ(plan(view(whole, {.only = {"w"}}), "zt").changes().size(), 2U);  // a view says it too
  }
}

TEST(Join, TakesEqualMetadataOnceAndAsksAboutOther) {
  const std::vector<Model> equal = {model_of({"a"}, {{"k", Value::text("v")}}),
                                    model_of({"b"}, {{"k", Value::text("v")}, {"l", Value::text("w")}})};
  EXPECT_EQ(join(equal).attributes().size(), 2U);
  const std::vector<Model> other = {model_of({"a"}, {{"k", Value::text("v")}}),
                                    model_of({"b"}, {{"k", Value::integer(std::uint64_t{1})}})};
  const Finding finding = thrown([&] { join(other); });
  EXPECT_EQ(finding.rule, "misuse/duplicate-attribute");
  EXPECT_EQ(finding.message, "the attribute \"k\" is \"v\" in \"input 1\" and \"1\" in \"input 2\"");
  const Model first = join(other, OnDuplicate::first), last = join(other, OnDuplicate::last);
  EXPECT_EQ(first.attribute("k")->as_text(), "v");
  EXPECT_EQ(last.attribute("k")->as_u64(), 1U);
  EXPECT_EQ(plan(join(other, OnDuplicate::last), "zt").changes().size(), 1U);
}

TEST(Join, TakesOneTokenizer) {
  Builder a, b, c;
  Tokenizer tokenizer;
  tokenizer.vocab_size = 2;
  tokenizer.tokens.push_back("x");
  tokenizer.tokens.push_back("y");
  a.tokenizer(tokenizer);
  c.tokenizer(tokenizer);
  tokenizer.special = {{"pad", 0}};
  b.tokenizer(tokenizer);
  const std::vector<Model> models = {a.build(), b.build()};
  EXPECT_EQ(thrown([&] { join(models); }).rule, "misuse/duplicate-tokenizer");
  EXPECT_TRUE(join(models, OnDuplicate::first).tokenizer()->special.empty());
  EXPECT_EQ(*join(models, OnDuplicate::last).tokenizer(), tokenizer);
  const std::vector<Model> same = {models[0], c.build()};
  EXPECT_NE(join(same).tokenizer(), nullptr);
}

// The second model's digest fails: the conversion of both must find it, as that of the model alone does.
TEST(Join, ChecksEachModelByItsOwnRules) {
  const Folder folder;
  saved(folder, "a.safetensors", model_of({"a"}));
  const std::string path = saved(folder, "b.zt", model_of({"b", "c"}), {.digest = "sha256"});
  std::uint64_t at = 0;
  {
    const Model in = open(path);
    const Tensor b = in["b"];
    at = b.main().extent()->offset;
  }
  std::string bytes = read_file(path);
  bytes[static_cast<std::size_t>(at)] = static_cast<char>(bytes[static_cast<std::size_t>(at)] ^ 0x55);
  write_file(path, bytes);
  const std::vector<Model> models = {open(folder / "a.safetensors"), open(path)};
  const Model whole = join(models);
  EXPECT_EQ(thrown([&] { save(whole, folder / "out.zt", {.allow = every_loss()}); }).kind, Kind::malformed);
  EXPECT_EQ(thrown([&] { save(view(whole, {.without = {"a"}}), folder / "out.zt", {.allow = every_loss()}); }).kind,
            Kind::malformed);
  save(view(whole, {.without = {"b"}}), folder / "out.zt", {.allow = every_loss()});
  EXPECT_EQ(open(folder / "out.zt").size(), 2U);
}

TEST(Join, OfJoinedModelsIsJoined) {
  const Folder folder;
  std::vector<Model> some;
  for (const char* const name : {"a", "b", "c", "d"})
    some.push_back(open(saved(folder, std::string(name) + ".zt", model_of({name}), {.digest = "sha256"})));
  const std::vector<Model> pairs = {join(std::span(some).first(2)), join(std::span(some).last(2))};
  save(join(pairs), folder / "out.zt");
  EXPECT_EQ(content_digest(open(folder / "out.zt")), content_digest(join(some)));
}

TEST(Join, IsNoInputThatItsOutputMayReplace) {
  const Folder folder;
  const std::vector<Model> models = {open(saved(folder, "a.zt", model_of({"a"}))),
                                     open(saved(folder, "b.zt", model_of({"b"})))};
  EXPECT_EQ(thrown([&] { save(join(models), folder / "b.zt", {.replace = true}); }).rule, "misuse/output-is-input");
}

TEST(Join, OfManyStaysWithinTheLimits) {
  std::vector<Model> models;
  for (int i = 0; i < 10000; ++i) models.push_back(model_of({"t" + std::to_string(i)}));
  EXPECT_EQ(join(models).size(), 10000U);
  EXPECT_EQ(thrown([&] { join(models, OnDuplicate::error, {.tensors = 9999}); }).rule, "limit/tensors");
  EXPECT_EQ(join({}).size(), 0U);
}

}  // namespace
}  // namespace weighbridge

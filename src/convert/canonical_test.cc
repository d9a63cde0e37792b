// SPDX-License-Identifier: Apache-2.0
// Options::canonical: equal content gives equal bytes, whatever its order and the container that held it. What is no
// content is named when it is left out.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/convert_testing.h"
#include "support/items.h"
#include "support/properties.h"
#include "support/sample_models.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/formats.h"
#include "weighbridge/open.h"

namespace weighbridge {
namespace {

using convert::testing::pattern;
using test::every_loss;
using test::read_file;
using test::thrown;
using Folder = test::TemporaryFolder;

// The same content in the opposite order.
Model reversed(const Model& model) {
  Builder out;
  std::vector<Value::Entry> attributes(model.attributes().begin(), model.attributes().end());
  std::ranges::reverse(attributes);
  for (auto& [key, value] : attributes) out.attribute(key, value);
  if (const auto tokenizer = model.tokenizer()) {
    Tokenizer other = *tokenizer;
    std::ranges::reverse(other.special);
    out.tokenizer(std::move(other));
  }
  for (std::uint32_t i = model.size(); i-- > 0;) out.tensor(std::string(model.name(i)), model[i]);
  return out.build();
}

// Every file of an output by its name.
std::map<std::string, std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {{"", read_file(path)}};
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      out[std::filesystem::relative(entry.path(), path).string()] = read_file(entry.path().string());
  return out;
}

std::map<std::string, std::string> canonical(const Model& model, std::string_view format, Options options = {}) {
  const Folder folder;
  options.canonical = true;
  options.allow = every_loss();
  const std::string out = folder / "out/";
  const bool many = find_format(format)->folder || options.shards.max_size != 0;
  const std::string path = many ? out : folder / "out";
  plan(model, format, options).execute(path);
  return files_of(path);
}

Model kept(const Folder& folder, const Model& model, const std::string& name, const Options& options = {}) {
  save(model, folder / name, options);
  return open(folder / name);
}

std::vector<Model> samples() {
  Builder one;
  one.tensor("array", DType::f32, {2, 3}, convert::testing::pattern(24));
  return {one.build(), test::plain_model().build(), test::bert_model().build(),
          test::llama_model({.layers = 11}).build(), test::llama_model({.vocabulary = 300}).build()};
}

TEST(Canonical, EqualContentGivesEqualBytesInEveryFormat) {
  std::map<std::string_view, int> written;
  for (const Model& model : samples()) {
    const Folder folder;
    const Model other =
        kept(folder, reversed(model), "a.zt", {.encoding = "zstd", .digest = "sha256", .version = "1.2"});
    for (const FormatInfo& format : formats()) {
      if (!format.writes || !plan(model, format.name, {.canonical = true}).blockers().empty()) continue;
      ++written[format.name];
      EXPECT_EQ(canonical(model, format.name), canonical(other, format.name)) << format.name;
      EXPECT_EQ(canonical(model, format.name), canonical(reversed(other), format.name)) << format.name;
    }
  }
  for (const FormatInfo& format : formats()) EXPECT_EQ(written.contains(format.name), format.writes) << format.name;
}

TEST(Canonical, RandomModelsDoNotDependOnTheirOrder) {
  EXPECT_TRUE(test::holds([] {
    const std::string format =
        *rc::gen::elementOf(std::vector<std::string>{"zt", "zt0", "safetensors", "stb", "pytorch"});
    const Model model = test::a_model(format);
    RC_PRE(plan(model, format, {.canonical = true}).blockers().empty());
    RC_ASSERT(canonical(model, format) == canonical(reversed(model), format));
    if (format != "zt") return;  // which keeps all of the model
    const Folder folder;
    const Model other = kept(folder, reversed(model), "a.zt", {.allow = every_loss(), .encoding = "zstd"});
    RC_ASSERT(canonical(model, format) == canonical(other, format));
  }));
}

TEST(Canonical, CanonicalOfCanonicalIsTheSame) {
  for (const Model& model : samples())
    for (const FormatInfo& format : formats()) {
      Options options{.allow = every_loss(), .canonical = true};
      if (!format.writes || !plan(model, format.name, options).blockers().empty()) continue;
      const Folder folder;
      const std::string out = folder / "out/", path = format.folder ? out : folder / "out";
      plan(model, format.name, options).execute(path);
      OpenOptions as;
      as.format = format.name;
      EXPECT_EQ(files_of(path), canonical(open(path, {}, as), format.name)) << format.name;
    }
}

TEST(Canonical, ShardsAndEncodingsAreTheSameToo) {
  const Model model = test::plain_model().build();
  const Options shards{.shards = {.max_size = 60}};
  const auto files = canonical(model, "safetensors", shards);
  EXPECT_GT(files.size(), 3U);
  EXPECT_EQ(files, canonical(reversed(model), "safetensors", shards));
  const Folder folder;
  const Model small = kept(folder, reversed(model), "a.zt", {.encoding = "zstd", .level = 1});
  for (const char* const format : {"zt", "zt0"}) {
    const Options encoded{.encoding = "zstd", .level = 19, .digest = "crc32c"};
    EXPECT_EQ(canonical(model, format, encoded), canonical(small, format, encoded)) << format;
  }
}

// Two tensors with the same bytes may be stored once or twice, which is no content.
TEST(Canonical, SharedBytesAreCopiedAndNamed) {
  const Folder folder;
  const Model one = kept(folder, test::plain_model().build(), "a.zt");
  const Tensor bias = *one.find("bias");
  Builder shared, copied;
  shared.tensor("a", bias).tensor("b", bias);
  const Model tied = kept(folder, shared.build(), "tied.zt");
  copied.tensor("a", bias).tensor("b", DType::f32, {3}, bias.main().view());
  const Model untied = copied.build();
  for (const char* const format : {"zt", "zt0", "stb", "safetensors", "pytorch"}) {
    const Plan made = plan(tied, format, {.canonical = true});
    ASSERT_EQ(made.losses().size(), 1U) << format;
    EXPECT_EQ(made.losses()[0].kind, LossKind::alias);
    EXPECT_FALSE(made.possible());
    EXPECT_EQ(canonical(tied, format), canonical(untied, format)) << format;
  }
}

TEST(Canonical, IndexTypesDoNotCount) {
  const std::int32_t narrow[] = {0, 1, 1, 2};
  const std::uint64_t wide[] = {0, 1, 1, 2};
  const auto sparse = [](DType index, std::span<const std::byte> coords) {
    Builder out;
    out.object("s", Layout::sparse_coo, {2, 3}, {},
               {{"coords", index, {4}, convert::testing::keep({coords.begin(), coords.end()})},
                {"values", DType::u8, {2}, pattern(2)}});
    return out.build();
  };
  const Model one = sparse(DType::i32, std::as_bytes(std::span(narrow))),
              other = sparse(DType::u64, std::as_bytes(std::span(wide)));
  EXPECT_EQ(canonical(one, "zt"), canonical(other, "zt"));
  EXPECT_EQ(canonical(one, "zt", {.encoding = "zstd"}), canonical(other, "zt", {.encoding = "zstd"}));
  EXPECT_EQ(canonical(one, "pytorch"), canonical(other, "pytorch"));
}

TEST(Canonical, TimesAndThePlaceDoNotCount) {
  const Folder folder;
  Model model = test::bert_model().build();
  const std::string a = folder / "a/", b = folder / "b/", name = "model_name", time = "created_at";
  // Only metadata of the weights says the name of this folder's model: without it, it is that of the folder.
  Builder unnamed;
  for (const auto& [key, value] : model.attributes())
    if (key != name && key != time) unnamed.attribute(key, value);
  unnamed.tokenizer(*model.tokenizer());
  for (const Tensor& tensor : model) unnamed.tensor(std::string(tensor.name()), tensor);
  const Model made = unnamed.build();
  plan(made, "hf").execute(a);
  plan(made, "hf", {.metadata = {.created_at = "2025-01-31T12:00:00Z"}}).execute(b);
  const Model one = open(a), other = open(b);
  ASSERT_EQ(one.attribute(name)->to_text(), "a");
  ASSERT_EQ(other.attribute(name)->to_text(), "b");
  for (const char* const format : {"zt", "embd", "hf", "safetensors"})
    EXPECT_EQ(canonical(one, format), canonical(other, format)) << format;
  const Plan plan_of_other = plan(other, "embd", {.canonical = true});
  const auto named = [&](const std::string& key) {
    return std::ranges::any_of(plan_of_other.changes(),
                               [&](const Item& item) { return item.subject == "attributes[\"" + key + "\"]"; });
  };
  EXPECT_TRUE(named(name));
  EXPECT_TRUE(named(time));
  // A name and a time that the caller gives are written.
  const Folder asked;
  plan(other, "embd", {.canonical = true, .metadata = {.created_at = "2026-01-31T12:00:00Z", .model_name = "N"}})
      .execute(asked / "m");
  const Model written = open(asked / "m");
  EXPECT_EQ(written.attribute(name)->to_text(), "N");
  EXPECT_EQ(written.attribute(time)->to_text(), "2026-01-31T12:00:00Z");
}

// Hugging Face's writers put keys into config.json in any order; so may maps inside it be.
TEST(Canonical, MapsInMetadataAreOrderedToo) {
  const auto with = [](std::vector<Value::Entry> map) {
    Builder out;
    out.attribute("map", Value::list({Value::map(std::move(map))}));
    out.tensor("t", DType::u8, {3}, pattern(3));
    return out.build();
  };
  const Value one = Value::integer(std::int64_t{1}), two = Value::text("2");
  const Model a = with({{"x", one}, {"y", two}}), b = with({{"y", two}, {"x", one}});
  for (const char* const format : {"zt", "safetensors"})
    EXPECT_EQ(canonical(a, format), canonical(b, format)) << format;
  EXPECT_EQ(canonical(a, "zt", {.version = "1.2"}), canonical(b, "zt", {.version = "1.2"}));
}

TEST(Canonical, IsASwitchThatAppendRefuses) {
  Options options;
  options.set("canonical", "true");
  EXPECT_TRUE(options.canonical);
  const Folder folder;
  const Model target = kept(folder, test::plain_model().build(), "a.zt");
  EXPECT_EQ(thrown([&] { plan_append(target, target, options); }).rule, "misuse/append");
}

}  // namespace
}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Sharded safetensors: opened by the index, by the folder and as a single shard, and the limits on all shards together.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/tiny_folders.h"
#include "weighbridge/hash.h"
#include "weighbridge/open.h"
#include "weighbridge/verify.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;
using huggingface::testing::Files;
using huggingface::testing::in_memory;
using huggingface::testing::safetensors;
using huggingface::testing::write_files;
using test::rules_of;
using Rules = std::vector<std::string>;

const std::string kIndex = "model.safetensors.index.json", kFirst = "model-00001-of-00002.safetensors",
                  kSecond = "model-00002-of-00002.safetensors";

Files shards() {
  return {{kFirst, safetensors({{"a", {2}}, {"c", {1}, "F32", 'c'}}, R"({"format":"pt","k":"1"})")},
          {kSecond, safetensors({{"b", {3}, "F32", 'b'}}, R"({"format":"pt"})")},
          {kIndex, R"({"metadata":{"total_size":24},"weight_map":{"a":")" + kFirst + R"(","b":")" + kSecond +
                       R"(","c":")" + kFirst + "\"}}"}};
}

void expect_whole(const Verdict& verdict) {
  EXPECT_EQ(rules_of(verdict.report), Rules{});
  EXPECT_EQ(verdict.format, "safetensors");
  const Model& model = verdict.model;
  EXPECT_EQ(model.format(), "safetensors");
  ASSERT_EQ(model.size(), 3U);
  const char* const names[] = {"a", "c", "b"};  // shards sorted by name, tensors in the order of each shard
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(model.name(i), names[i]);
  EXPECT_EQ(model.attribute("format")->as_text(), "pt");
  EXPECT_EQ(model.attribute("k")->as_text(), "1");
  EXPECT_EQ(model.attributes().size(), 2U);
  EXPECT_EQ(model.sources().size(), 3U);
  std::string bytes;
  model["b"].main().stream({}, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  EXPECT_EQ(bytes, std::string(12, 'b'));
}

TEST(ShardedSafetensors, OpenByTheirIndexAndByTheirFolder) {
  const test::TemporaryFolder folder;
  write_files(folder.path(), shards());
  expect_whole(verify(folder / kIndex));
  expect_whole(verify(folder.path()));
  expect_whole(verify(folder / kIndex, {}, {.format = "safetensors"}));
  expect_whole(verify(folder.path(), {}, {.format = "safetensors"}));
  expect_whole(verify(in_memory(shards())));
  EXPECT_EQ(open(folder / kIndex).size(), 3U);
}

// The index places b in a file that is not there.
TEST(ListIncomplete, TensorsOfAMissingShardAreListedWithTheReason) {
  const test::TemporaryFolder folder;
  Files files = shards();
  files.erase(kSecond);
  write_files(folder.path(), files);
  EXPECT_EQ(test::thrown([&] { open(folder.path()); }).rule, "safetensors/shard-missing");
  Report report;
  const auto model = open(folder.path(), report, {}, {.list_incomplete = true});
  ASSERT_TRUE(model);
  EXPECT_EQ(rules_of(report), Rules{"safetensors/shard-missing"});
  EXPECT_FALSE(report.valid());
  ASSERT_EQ(model->size(), 3U);
  EXPECT_EQ((*model)["a"].to_dense().size, 8U);
  const Tensor missing = (*model)["b"];
  EXPECT_FALSE(missing.has_shape());
  ASSERT_NE(missing.unsupported(), nullptr);
  EXPECT_EQ(missing.unsupported()->rule, "safetensors/shard-missing");
  EXPECT_EQ(test::thrown([&] { (void)missing.to_dense(); }).rule, "safetensors/shard-missing");
  const Verdict listed = verify(folder.path(), {}, {.list_incomplete = true}), plain = verify(folder.path());
  EXPECT_EQ(rules_of(listed.report), rules_of(plain.report));
  EXPECT_EQ(listed.model.size(), 3U);
  EXPECT_EQ(plain.model.size(), 2U);
}

TEST(ListIncomplete, TensorsThatTheIndexOmitsOrMisplacesAreThere) {
  const test::TemporaryFolder folder;
  Files files = shards();
  files[kIndex] = R"({"weight_map":{"a":")" + kFirst + R"(","b":")" + kFirst + R"(","x":")" + kSecond + "\"}}";
  write_files(folder.path(), files);
  Report report;
  const auto model = open(folder.path(), report, {}, {.list_incomplete = true});
  ASSERT_TRUE(model);
  EXPECT_EQ(rules_of(report), (Rules{"safetensors/tensor-missing", "safetensors/tensor-missing",
                                     "safetensors/tensor-unlisted", "safetensors/tensor-unlisted"}));
  ASSERT_EQ(model->size(), 4U);
  for (const auto& [name, size] : {std::pair("a", 8U), {"b", 12U}, {"c", 4U}})
    EXPECT_EQ((*model)[name].to_dense().size, size) << name;
  const Tensor missing = (*model)["x"];
  EXPECT_NE(missing.unsupported(), nullptr);
}

TEST(ShardedSafetensors, AnIndexOfAnotherNameIsOneToo) {
  const test::TemporaryFolder folder;
  Files files = shards();
  files["diffusion.fp16.safetensors.index.json"] = files[kIndex];
  files.erase(kIndex);
  write_files(folder.path(), files);
  expect_whole(verify(folder.path()));
  write_files(folder.path(), shards());
  const Finding finding = test::thrown([&] { open(folder.path()); });
  EXPECT_EQ(finding.rule, "misuse/not-a-file");
  EXPECT_NE(finding.message.find("diffusion.fp16.safetensors.index.json"), std::string::npos) << finding.message;
}

TEST(ShardedSafetensors, AFolderMayHoldTheModelInOneFile) {
  const Verdict verdict = verify(in_memory({{"model.safetensors", safetensors({{"a", {2}}})}, {"README.md", "text"}}));
  EXPECT_EQ(rules_of(verdict.report), Rules{});
  EXPECT_EQ(verdict.format, "safetensors");
  EXPECT_EQ(verdict.model.size(), 1U);
}

// The index won in silence.
TEST(ShardedSafetensors, BesideTheModelInOneFileAreTwoModels) {
  const test::TemporaryFolder folder;
  Files files = shards();
  files["model.safetensors"] = safetensors({{"a", {2}}});
  write_files(folder.path(), files);
  EXPECT_EQ(rules_of(verify(folder.path()).report), Rules{"safetensors/two-weights"});
  EXPECT_EQ(test::thrown([&] { open(folder.path()); }).rule, "safetensors/two-weights");
  expect_whole(verify(folder / kIndex));
  EXPECT_EQ(open(folder / "model.safetensors").size(), 1U);
}

TEST(ShardedSafetensors, StraysAreWarnings) {
  const test::TemporaryFolder folder;
  Files files = shards();
  const std::string stray = "model-00003-of-00009.safetensors";
  files[stray] = safetensors({{"old", {1}}});
  files["other-00001-of-00002.safetensors"] = files[stray];
  write_files(folder.path(), files);
  const Verdict verdict = verify(folder.path());
  EXPECT_EQ(rules_of(verdict.report), Rules{"safetensors/shard-stray"});
  EXPECT_NE(verdict.report.findings()[0].message.find(stray), std::string::npos);
  EXPECT_TRUE(verdict.report.valid());
  write_files(folder.path(), {{"model.safetensors", safetensors({{"a", {2}}})}});
  std::filesystem::remove(folder / kIndex);
  EXPECT_EQ(rules_of(verify(folder.path()).report),
            (Rules{"safetensors/shard-stray", "safetensors/shard-stray", "safetensors/shard-stray"}));
}

TEST(ShardedSafetensors, TheSizeIsThatOfAllFiles) {
  const test::TemporaryFolder folder;
  const Files files = shards();
  write_files(folder.path(), files);
  std::uint64_t size = 0;
  for (const auto& [name, bytes] : files) size += bytes.size();
  EXPECT_EQ(open(folder / kIndex).file_size(), size);
  EXPECT_EQ(open(folder.path()).file_size(), size);
  EXPECT_EQ(open(folder / kFirst).file_size(), files.at(kFirst).size());
}

// The message named neither the shards nor what to do with them.
TEST(ShardedSafetensors, WithoutTheIndexAreNamed) {
  const test::TemporaryFolder folder;
  Files files = shards();
  files.erase(kIndex);
  write_files(folder.path(), files);
  const Finding finding = test::thrown([&] { open(folder.path()); });
  EXPECT_EQ(finding.rule, "misuse/not-a-file");
  EXPECT_NE(finding.message.find(std::string("'") + kFirst + "' and 1 more"), std::string::npos) << finding.message;
}

TEST(ShardedSafetensors, AShardByItselfIsOneFileWithANote) {
  const test::TemporaryFolder folder;
  write_files(folder.path(), shards());
  const Verdict alone = verify(folder / kFirst);
  EXPECT_EQ(rules_of(alone.report), Rules{"safetensors/shard-alone"});
  EXPECT_TRUE(alone.report.valid());
  EXPECT_NE(alone.report.findings()[0].message.find(kIndex), std::string::npos);
  EXPECT_EQ(alone.model.size(), 2U);
  Report report;
  EXPECT_EQ(open(folder / kFirst, report)->size(), 2U);
  EXPECT_EQ(rules_of(report), Rules{"safetensors/shard-alone"});
  // Without an index, its name says so. Only a file counts as the index.
  const auto by_name = [&](const std::string& path) {
    const Report found = verify(path).report;
    EXPECT_EQ(rules_of(found), Rules{"safetensors/shard-alone"});
    EXPECT_NE(found.findings()[0].message.find("file 1 of 2"), std::string::npos) << found.findings()[0].message;
  };
  fs::remove(folder / kIndex);
  fs::create_directory(folder / kIndex);
  by_name(folder / kFirst);
  fs::remove(folder / kIndex);
  by_name(folder / kFirst);
  // Under another name, and listed by no index, it is a file like others.
  fs::rename(folder / kFirst, folder / "other.safetensors");
  EXPECT_EQ(rules_of(verify(folder / "other.safetensors").report), Rules{});
}

TEST(ShardedSafetensors, AShardThatLeadsOutIsRefused) {
  const test::TemporaryFolder root;
  write_files(root / "in", shards());
  fs::rename(root / ("in/" + kSecond), root / "outside");
  fs::create_symlink("../outside", root / ("in/" + kSecond));
  for (const std::string& path : {root / "in", root / ("in/" + kIndex)}) {
    EXPECT_EQ(rules_of(verify(path).report), Rules{"safetensors/shard-link"});
    EXPECT_EQ(test::thrown([&] { open(path); }).rule, "safetensors/shard-link");
  }
}

TEST(ShardedSafetensors, OfMetadataThatDifferTheFirstCounts) {
  Files files = shards();
  files[kSecond] = safetensors({{"b", {3}}}, R"({"format":"tf"})");
  const Verdict verdict = verify(in_memory(files));
  EXPECT_EQ(rules_of(verdict.report), Rules{"safetensors/metadata-conflict"});
  EXPECT_EQ(verdict.model.attribute("format")->as_text(), "pt");
}

// All shards once kept their descriptors, so a model of thousands of files could not be opened.
TEST(ShardedSafetensors, MayBeMoreThanTheProcessMayOpenFiles) {
  const test::TemporaryFolder folder;
  std::string places;
  Files files;
  const auto name = [](int i) { return std::to_string(i) + ".safetensors"; };
  for (int i = 0; i < 300; ++i) {
    const std::string tensor = "t" + std::to_string(i);
    files[name(i)] = safetensors({{tensor, {2}, "F32", static_cast<char>('a' + i % 26)}});
    places += (i > 0 ? ",\"" : "\"") + tensor + "\":\"" + name(i) + "\"";
  }
  files[kIndex] = R"({"weight_map":{)" + places + "}}";
  write_files(folder.path(), files);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (const std::string& path : {folder.path(), folder / kIndex}) {
    EXPECT_EQ(rules_of(verify(path).report), Rules{});
    const Model model = open(path);
    ASSERT_EQ(model.size(), 300U);
    for (int i = 0; i < 300; ++i)
      EXPECT_EQ(std::to_integer<int>(model["t" + std::to_string(i)].to_dense().data[0]), 'a' + i % 26);
    // Of the first shards no descriptor is open now: what has replaced one is not read in its place.
    fs::rename(folder / name(3), folder / "kept");
    write_files(folder.path(), {{name(3), files[name(3)]}});
    EXPECT_EQ(test::thrown([&] { model["t3"].to_dense(); }).rule, "io/changed");
    EXPECT_EQ(test::thrown([&] { content_digest(model); }).rule, "io/changed");
    fs::rename(folder / "kept", folder / name(3));
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

// Each shard is within the limit; all together exceed it.
TEST(ShardedSafetensors, LimitsHoldForAllShardsTogether) {
  const auto header = [](const std::string& shard) { return shard.size() - 8 - 12; };  // 12 bytes of tensors in each
  const Files files = shards();
  const std::uint64_t all = files.at(kIndex).size() + header(files.at(kFirst)) + header(files.at(kSecond));
  Context context;
  context.limits.header = all;
  EXPECT_EQ(rules_of(verify(in_memory(files), context).report), Rules{});
  context.limits.header = all - 1;
  const Verdict verdict = verify(in_memory(files), context);
  EXPECT_EQ(rules_of(verdict.report), Rules{"limit/header"});
  EXPECT_EQ(verdict.model.size(), 2U);
  EXPECT_EQ(test::thrown([&] { open(in_memory(files), context); }).rule, "limit/header");
}

TEST(ShardedSafetensors, MetadataOfAllShardsIsKeptUnderOneLimit) {
  Files files = shards();
  files[kSecond] = safetensors({{"b", {3}}}, R"({"other":"2"})");
  Context context;
  context.limits.memory = 3 * 256;
  EXPECT_EQ(rules_of(verify(in_memory(files), context).report), Rules{});
  --context.limits.memory;
  EXPECT_EQ(rules_of(verify(in_memory(files), context).report), Rules{"limit/memory"});
}

TEST(ShardedSafetensors, ATensorThatNoIndexPlacesCountsAgainstTheLimitToo) {
  Files files = shards();
  files[kSecond] = safetensors({{"b", {3}}, {"d", {1}}});
  Context context;
  context.limits.tensors = 3;
  EXPECT_EQ(rules_of(verify(in_memory(files), context).report), Rules{"limit/tensors"});
}

TEST(ShardedSafetensors, AFolderInThePlaceOfAShardIsAMissingShard) {
  const test::TemporaryFolder folder;
  Files files = shards();
  files.erase(kSecond);
  write_files(folder.path(), files);
  fs::create_directory(folder / kSecond);
  EXPECT_EQ(test::thrown([&] { open(folder.path()); }).rule, "safetensors/shard-missing");
}

}  // namespace
}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Publishing a folder: no file gets its name too early, a failure leaves no unpublished files, and stale files are
// removed.
#include "convert/output_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/unprivileged.h"

namespace weighbridge::convert {
namespace {

using Names = std::set<std::string>;

core::OutFolder layout() {
  core::OutFolder out;
  out.payloads.push_back({"main", {}});
  out.format = "safetensors";
  out.last = "main";
  out.small = {{"stale", std::nullopt}, {"small", "text"}, {"below/small", "more"}};
  return out;
}

void write_main(io::AtomicFile& file) {
  file.write_at(0, std::as_bytes(std::span("all", 3)));
  file.sync(3);
}

void publish(OutputFolder& folder) {
  io::Publication publication(folder.last());
  folder.add_others(publication);
  publication.publish();
  folder.made().keep();
}

TEST(OutputFolder, IsThereOnlyOnceItIsPublished) {
  const test::TemporaryFolder root;
  const core::OutFolder what = layout();
  {
    OutputFolder folder(what, root / "out/", false);
    folder.write();
    EXPECT_EQ(folder.payload(0).path(), root / "out/main");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "out")) {
      if (!entry.is_directory()) {
        EXPECT_TRUE(entry.path().filename().string().starts_with(".")) << entry.path();
      }
    }
  }
  EXPECT_EQ(root.entries(), Names{});
  OutputFolder folder(what, root / "out", false);
  folder.write();
  write_main(folder.payload(0));
  publish(folder);
  EXPECT_EQ(test::read_file(root / "out/small"), "text");
  EXPECT_EQ(test::read_file(root / "out/below/small"), "more");
  EXPECT_EQ(test::read_file(root / "out/main"), "all");
}

TEST(OutputFolder, WhatAKilledRunLeftIsNothing) {
  const test::TemporaryFolder root;
  std::filesystem::create_directories(root / "out/below");
  test::write_file(root / "out/.main.weighbridge-0123456789abcdef.tmp", "half");
  test::write_file(root / "out/below/.small.weighbridge-0123456789abcdef.tmp", "half");
  const core::OutFolder what = layout();
  OutputFolder folder(what, root / "out", false);
  folder.write();
  write_main(folder.payload(0));
  publish(folder);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "out")) files += !entry.is_directory();
  EXPECT_EQ(files, 3U);
}

TEST(OutputFolder, WhatAKilledRunLeftOfAnotherNumberOfShardsGoesToo) {
  const test::TemporaryFolder root;
  std::filesystem::create_directories(root / "out");
  test::write_file(root / "out/.part-2.weighbridge-0123456789abcdef.tmp", "half");
  test::write_file(root / "out/.others.weighbridge-0123456789abcdef.tmp", "not of this output");
  core::OutFolder what = layout();
  what.stale = [](std::string_view name) { return name.starts_with("part-"); };
  OutputFolder folder(what, root / "out", false);
  EXPECT_FALSE(std::filesystem::exists(root / "out/.part-2.weighbridge-0123456789abcdef.tmp"));
  EXPECT_TRUE(std::filesystem::exists(root / "out/.others.weighbridge-0123456789abcdef.tmp"));
}

TEST(OutputFolder, AFolderThatHoldsSomethingNeedsTheWord) {
  const test::TemporaryFolder root;
  const core::OutFolder what = layout();
  std::filesystem::create_directories(root / "out");
  for (const char* name : {"mine", "stale", "small"}) test::write_file(root / "out/" + name, "old");
  EXPECT_EQ(test::thrown([&] { OutputFolder(what, root / "out", false); }).rule, "misuse/output-exists");
  {
    OutputFolder abandoned(what, root / "out", true);
    abandoned.write();
  }
  EXPECT_EQ(test::read_file(root / "out/small"), "old");
  OutputFolder folder(what, root / "out", true);
  folder.write();
  write_main(folder.payload(0));
  publish(folder);
  EXPECT_EQ(test::read_file(root / "out/small"), "text");
  EXPECT_EQ(test::read_file(root / "out/mine"), "old");
  EXPECT_FALSE(std::filesystem::exists(root / "out/stale"));
}

TEST(OutputFolder, WhateverIsNoTemporaryIsSomething) {
  const core::OutFolder what = layout();
  const auto rule = [&](const std::string& path) {
    return test::thrown([&] { OutputFolder(what, path, false); }).rule;
  };
  for (const char* name : {".hidden", ".notes.tmp", "main.weighbridge-0123456789abcdef.tmp", "below/.small",
                           "below/deeper/.small.weighbridge-0123456789abcdef.tmp"}) {
    const test::TemporaryFolder root;
    std::filesystem::create_directories(std::filesystem::path(root / name).parent_path());
    test::write_file(root / name, "mine");
    EXPECT_EQ(rule(root.path()), "misuse/output-exists") << name;
    EXPECT_EQ(test::read_file(root / name), "mine");
  }
  const test::TemporaryFolder root, empty;
  std::filesystem::create_directory_symlink(empty.path(), root / "link");
  EXPECT_EQ(rule(root.path()), "misuse/output-exists");
}

TEST(OutputFolder, ALinkThatComesAfterTheCheckIsNotFollowed) {
  const test::TemporaryFolder root;
  std::filesystem::create_directory(root / "elsewhere");
  const core::OutFolder what = layout();
  OutputFolder folder(what, root / "out", false);
  std::filesystem::create_directory_symlink("../elsewhere", root / "out/below");
  EXPECT_EQ(test::thrown([&] { folder.write(); }).kind, Kind::io);
  EXPECT_TRUE(std::filesystem::is_empty(root / "elsewhere"));
}

TEST(OutputFolder, TheRootKeepsItsName) {
  const core::OutFolder what = layout();
  const Finding finding = test::thrown([&] { OutputFolder(what, "//", false); });
  EXPECT_EQ(finding.rule, "misuse/output-exists");
  EXPECT_EQ(finding.message, "the folder is not empty");
  EXPECT_EQ(finding.file.name, "/");
}

TEST(OutputFolder, OneThatCannotBeReadIsNotTakenForEmpty) {
  const test::TemporaryFolder root;
  const core::OutFolder what = layout();
  std::filesystem::create_directories(root / "closed/inside");
  ASSERT_EQ(::chmod(root.path().c_str(), 0755), 0);
  for (const auto& [name, rule] : {std::pair{"closed/inside", "misuse/output-exists"}, {"closed", "io/open"}}) {
    ASSERT_EQ(::chmod((root / name).c_str(), 0), 0);
    {
      const test::Unprivileged nobody;
      if (!nobody.holds()) GTEST_SKIP() << "this process cannot stop being root, which reads all folders";
      EXPECT_EQ(test::thrown([&] { OutputFolder(what, root / "closed", false); }).rule, rule);
    }
    ASSERT_EQ(::chmod((root / name).c_str(), 0755), 0);
  }
}

TEST(OutputFolder, AFileIsNoFolder) {
  const test::TemporaryFolder root;
  test::write_file(root / "file", "mine");
  const core::OutFolder what = layout();
  EXPECT_EQ(test::thrown([&] { OutputFolder(what, root / "file", true); }).rule, "misuse/output-kind");
  EXPECT_EQ(test::thrown([&] { OutputFolder(what, root / "absent/out", false); }).rule, "io/create");
}

// An empty safetensors file.
const std::string kNoTensors = std::string("\x08\0\0\0\0\0\0\0", 8) + "{}      ";

void write_empty_model(io::AtomicFile& file) {
  file.write_at(0, std::as_bytes(std::span(kNoTensors)));
  file.sync(kNoTensors.size());
}

core::OutFolder whole_layout() {
  core::OutFolder out = layout();
  out.payloads[0].name = out.last = "model.safetensors";
  return out;
}

TEST(OutputFolder, IsOpenedBeforeItHasItsName) {
  const test::TemporaryFolder root;
  core::OutFolder what = whole_layout();
  std::size_t checks = 0;
  what.check = [&](const Model& model) { checks += model.format() == "safetensors"; };
  OutputFolder folder(what, root / "out", false);
  folder.write();
  write_empty_model(folder.payload(0));
  folder.check("safetensors", {});
  EXPECT_EQ(checks, 1U);
  EXPECT_FALSE(std::filesystem::exists(root / "out/model.safetensors"));
}

TEST(OutputFolder, ThatDoesNotOpenIsNotPublished) {
  const test::TemporaryFolder root;
  const core::OutFolder what = whole_layout();
  OutputFolder folder(what, root / "out", false);
  folder.write();
  write_main(folder.payload(0));
  EXPECT_EQ(test::thrown([&] { folder.check("safetensors", {}); }).rule, "io/read-back");
}

TEST(OutputFolder, SeveralFilesOfPayloadComeBeforeTheLast) {
  const test::TemporaryFolder root;
  std::filesystem::create_directory(root / "out");
  for (const char* name : {"model-00001-of-00009.safetensors", "mine", "stale"})
    test::write_file(root / "out/" + name, "");
  core::OutFolder what = layout();
  what.payloads.clear();
  for (const char* name : {"one", "two"}) what.payloads.push_back({name, {}});
  what.small.push_back({"index", "names both"});
  what.last = "index";
  what.stale = [](std::string_view name) { return name.starts_with("model-") || name == "one"; };
  OutputFolder folder(what, root / "out", true);
  folder.write();
  for (const std::size_t i : {0U, 1U}) write_main(folder.payload(i));
  EXPECT_EQ(folder.last().path(), root / "out/index");
  publish(folder);
  EXPECT_EQ(test::read_file(root / "out/two"), "all");
  EXPECT_EQ(test::read_file(root / "out/index"), "names both");
  EXPECT_FALSE(std::filesystem::exists(root / "out/model-00001-of-00009.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(root / "out/mine"));
}

}  // namespace
}  // namespace weighbridge::convert

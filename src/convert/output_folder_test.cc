// SPDX-License-Identifier: Apache-2.0
// Publishing a folder: nothing has its name too early, nothing stays that was not published, what is stale goes.
#include "convert/output_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace weighbridge::convert {
namespace {

using Names = std::set<std::string>;

core::OutFolder layout() {
  core::OutFolder out;
  out.main = "main";
  out.main_format = "safetensors";
  out.files = {{"stale", std::nullopt}, {"small", "text"}, {"below/small", "more"}};
  return out;
}

void write_main(io::AtomicFile& file) {
  file.write_at(0, std::as_bytes(std::span("all", 3)));
  file.sync(3);
}

TEST(OutputFolder, IsThereOnlyOnceItIsPublished) {
  const test::TemporaryFolder root;
  const core::OutFolder what = layout();
  {
    OutputFolder folder(what, root / "out/", false);
    EXPECT_EQ(folder.main(), root / "out/main");
    io::AtomicFile main(folder.main());
    folder.write();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "out")) {
      if (!entry.is_directory()) {
        EXPECT_TRUE(entry.path().filename().string().starts_with(".")) << entry.path();
      }
    }
  }
  EXPECT_EQ(root.entries(), Names{});
  OutputFolder folder(what, root / "out", false);
  io::AtomicFile main(folder.main());
  folder.write();
  write_main(main);
  publish_together(main, folder.beside());
  folder.keep();
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
  io::AtomicFile main(folder.main());
  folder.write();
  write_main(main);
  publish_together(main, folder.beside());
  folder.keep();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "out")) files += !entry.is_directory();
  EXPECT_EQ(files, 3U);
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
  io::AtomicFile main(folder.main(), {.replace = true, .expected_size = 0});
  folder.write();
  write_main(main);
  publish_together(main, folder.beside());
  folder.keep();
  EXPECT_EQ(test::read_file(root / "out/small"), "text");
  EXPECT_EQ(test::read_file(root / "out/mine"), "old");
  EXPECT_FALSE(std::filesystem::exists(root / "out/stale"));
}

TEST(OutputFolder, AFileIsNoFolder) {
  const test::TemporaryFolder root;
  test::write_file(root / "file", "mine");
  const core::OutFolder what = layout();
  EXPECT_EQ(test::thrown([&] { OutputFolder(what, root / "file", true); }).rule, "misuse/output-kind");
  EXPECT_EQ(test::thrown([&] { OutputFolder(what, root / "absent/out", false); }).rule, "io/create");
}

TEST(OutputFolder, IsOpenedBeforeItHasItsName) {
  const test::TemporaryFolder root;
  core::OutFolder what = layout();
  Names seen;
  what.check = [&](const core::OutFolder::Opener& file, const Context&) {
    for (const char* name : {"main", "small", "below/small", "stale", "other"})
      if (file(name)) seen.insert(name);
  };
  OutputFolder folder(what, root / "out", false);
  io::AtomicFile main(folder.main());
  folder.write();
  write_main(main);
  folder.check(main, {});
  EXPECT_EQ(seen, (Names{"main", "small", "below/small"}));
}

TEST(PublishTogether, AFailureLeavesAllAsTheyWere) {
  const test::TemporaryFolder root;
  for (const char* name : {"stale", "old"}) test::write_file(root / name, name);
  io::AtomicFile replaced(root / "old", {.replace = true, .expected_size = 0}), fresh(root / "fresh");
  for (io::AtomicFile* file : {&replaced, &fresh}) write_main(*file);
  const Beside beside[] = {{root / "stale"}, {root / "old", &replaced}, {root / "fresh", &fresh}};
  io::AtomicFile late(root / "late");
  EXPECT_THROW(publish_together(late, beside), std::logic_error);  // never synced
  EXPECT_EQ(test::read_file(root / "stale"), "stale");
  EXPECT_EQ(test::read_file(root / "old"), "old");
  EXPECT_FALSE(std::filesystem::exists(root / "fresh"));
  EXPECT_FALSE(std::filesystem::exists(root / "late"));
}

}  // namespace
}  // namespace weighbridge::convert

// SPDX-License-Identifier: Apache-2.0
// Several files that appear in a folder together. tests/robustness covers kills and full disks.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "io/temporary.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/convert.h"
#include "weighbridge/open.h"
#include "weighbridge/output.h"

namespace weighbridge {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Names = std::set<std::string>;

std::string rule_of(auto&& work) { return thrown(work).rule; }

TEST(OutputFiles, AppearTogetherInANewFolder) {
  const TemporaryFolder folder;
  OutputFiles files(folder / "deep/out", false);
  write_file(files.add("a"), "one");
  write_file(files.add("b"), "two");
  EXPECT_FALSE(std::filesystem::exists(folder / "deep/out"));
  EXPECT_EQ(files.path("a"), folder / "deep/out/a");
  files.publish();
  EXPECT_EQ(read_file(folder / "deep/out/a"), "one");
  EXPECT_EQ(read_file(folder / "deep/out/b"), "two");
}

TEST(Output, AbandonedLeaveNothingAndPublishedOnesStay) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFiles files(folder / "deep/out", false);
    OutputFile inside(files.add("a"), false), alone(folder / "alone", false), done(folder / "done", false);
    const std::byte byte{7};
    for (OutputFile* const file : {&inside, &alone, &done}) file->write({&byte, 1});
    done.publish();
    abandon_outputs();
    ::_exit(0);  // without destructors
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.entries(), Names{"done"});
}

// A source whose check takes a while, as one on a slow disk.
class SlowSource final : public Source {
 public:
  SlowSource() {
    const std::string head = R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}   )";
    bytes_ = std::string{static_cast<char>(head.size()), 0, 0, 0, 0, 0, 0, 0} + head + std::string(16, '\0');
  }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  std::string_view name() const noexcept override { return "<slow>"; }
  void check_unchanged() const override { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

 private:
  std::string bytes_;
};

// A conversion took the lock of the folder and then that of the process, OutputFiles in the other order: after ten
// seconds one of them was told that another process had the folder.
TEST(OutputFiles, TakeTheirTurnsWithAConversionInAnotherThread) {
  const TemporaryFolder folder;
  const Model model = open(std::make_shared<const SlowSource>());
  const Plan converting = plan(model, "safetensors", {.replace = true});
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] { EXPECT_NO_THROW(converting.execute(folder / "o.safetensors")); });
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    OutputFiles files(folder.path(), true);
    write_file(files.add("x.npy"), "x");
    EXPECT_NO_THROW(files.publish());
  }
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(folder.entries(), (Names{"o.safetensors", "x.npy"}));
}

TEST(OutputFiles, UnpublishedLeaveNeitherFilesNorFolders) {
  const TemporaryFolder folder;
  {
    OutputFiles files(folder / "deep/out", false);
    write_file(files.add("a"), "one");
    const OutputFiles moved = std::move(files);
    EXPECT_EQ(folder.entries(), Names{"deep"});
  }
  EXPECT_EQ(folder.entries(), Names{});
}

TEST(OutputFiles, ReplaceOnlyWhenAskedAndKeepTheMode) {
  const TemporaryFolder folder;
  write_file(folder / "a", "private");
  ::chmod((folder / "a").c_str(), 0600);
  EXPECT_EQ(rule_of([&] { OutputFiles(folder.path(), false).add("a"); }), "misuse/output-exists");
  OutputFiles files(folder.path(), true);
  write_file(files.add("a"), "new");
  files.publish();
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(std::filesystem::status(folder / "a").permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(folder.entries(), Names{"a"});
}

TEST(OutputFiles, ThatMeetANewFileTakeBackTheirOwn) {
  const TemporaryFolder folder;
  OutputFiles files(folder.path(), false);
  write_file(files.add("a"), "one");
  write_file(files.add("b"), "two");
  write_file(folder / "b", "another's");
  EXPECT_EQ(rule_of([&] { files.publish(); }), "misuse/output-exists");
  EXPECT_EQ(read_file(folder / "b"), "another's");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(OutputFiles, ThatCannotAllBeMovedLeaveTheFolderAsItWas) {
  for (const bool link : {false, true}) {
    const TemporaryFolder folder;
    write_file(folder / "old", "old");
    OutputFiles files(folder.path(), true);
    for (const char* const name : {"new", "old", "wall"}) write_file(files.add(name), "new");
    if (link)
      std::filesystem::create_symlink("old", folder / "wall");
    else
      std::filesystem::create_directory(folder / "wall");
    EXPECT_EQ(rule_of([&] { files.publish(); }), "misuse/output-exists");
    EXPECT_FALSE(std::filesystem::exists(folder / "new"));
    EXPECT_EQ(read_file(folder / "old"), "old");
    EXPECT_EQ(std::filesystem::is_symlink(folder / "wall"), link);
  }
}

TEST(OutputFiles, AFolderThatWasMadeMeanwhileStays) {
  const TemporaryFolder folder;
  OutputFiles files(folder / "out", true);
  write_file(files.add("a"), "one");
  std::filesystem::create_directory(folder / "out");
  write_file(folder / "out/b", "another's");
  EXPECT_EQ(rule_of([&] { files.publish(); }), "misuse/output-exists");
  EXPECT_FALSE(std::filesystem::exists(folder / "out/a"));
}

TEST(OutputFiles, ANameIsOneComponentAndGivenOnce) {
  const TemporaryFolder folder;
  OutputFiles files(folder / "out", false);
  for (const std::string name : {"", ".", "..", "a/b", "/a"})
    EXPECT_EQ(rule_of([&] { files.add(name); }), "misuse/path") << name;
  EXPECT_EQ(rule_of([&] { files.add(std::string("a\0b", 3)); }), "misuse/path");
  files.add("a");
  EXPECT_EQ(rule_of([&] { files.add("a"); }), "misuse/path");
}

TEST(OutputFiles, WhatWasAddedAndNeverWrittenIsNotPublished) {
  const TemporaryFolder folder;
  OutputFiles files(folder.path(), false);
  write_file(files.add("a"), "one");
  files.add("b");
  EXPECT_EQ(rule_of([&] { files.publish(); }), "io/publish");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(OutputFiles, OnlyAFolderNobodyHoldsIsStale) {
  const TemporaryFolder folder;
  const std::string killed = io::temporary_name("out");
  std::filesystem::create_directory(folder / killed);
  write_file((folder / killed) + "/a", "left");
  OutputFiles one(folder / "out", false);
  EXPECT_FALSE(std::filesystem::exists(folder / killed));
  const Names alive = folder.entries();
  const OutputFiles other(folder / "out", false);
  for (const std::string& name : alive) EXPECT_TRUE(folder.entries().contains(name));
  EXPECT_EQ(folder.entries().size(), 2U);
}

TEST(OutputFiles, StaleFoldersThatHoldFoldersAreNotOurs) {
  const TemporaryFolder folder;
  const std::string like = io::temporary_name("out");
  std::filesystem::create_directories((folder / like) + "/deep");
  const OutputFiles files(folder / "out", false);
  EXPECT_TRUE(std::filesystem::exists((folder / like) + "/deep"));
}

}  // namespace
}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Publishing: the target at each moment, leftovers, refusals.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace weighbridge::io {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Names = std::set<std::string>;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void publish_text(const std::string& path, std::string_view text, bool replace = false) {
  AtomicFile file(path, {.replace = replace, .expected_size = text.size()});
  file.write_at(0, bytes(text));
  file.sync(text.size());
  file.publish();
}

mode_t mode_of(const std::string& path) {
  struct stat there {};
  EXPECT_EQ(::stat(path.c_str(), &there), 0) << path;
  return there.st_mode & 07777;
}

// Sets the umask while it lives.
struct Umask {
  explicit Umask(mode_t mask) : before(::umask(mask)) {}
  ~Umask() { ::umask(before); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  mode_t before;
};

TEST(AtomicFile, TheTargetAppearsOnlyWhenPublishedAndNothingElseStays) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "out.zt");
    file.write_at(3, bytes("def"));
    file.write_at(0, bytes("abc"));
    EXPECT_FALSE(fs::exists(folder / "out.zt"));
    EXPECT_TRUE(fs::exists(file.temporary_path()));
    EXPECT_EQ(file.path(), folder / "out.zt");
    file.sync(6);
    EXPECT_FALSE(fs::exists(folder / "out.zt"));
    file.publish();
    EXPECT_EQ(folder.entries(), Names{"out.zt"});
  }
  EXPECT_EQ(folder.entries(), Names{"out.zt"});
  EXPECT_EQ(read_file(folder / "out.zt"), "abcdef");
}

TEST(AtomicFile, DestroyedBeforePublishingLeavesNothingAndTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder / "out.zt", "old");
  for (const bool synced : {false, true}) {
    AtomicFile file(folder / "out.zt", {.replace = true, .expected_size = 100});
    file.write_at(0, bytes("new"));
    if (synced) file.sync(3);
  }
  EXPECT_EQ(folder.entries(), Names{"out.zt"});
  EXPECT_EQ(read_file(folder / "out.zt"), "old");
}

TEST(AtomicFile, WorksInTheCurrentFolderWithABareName) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  publish_text("bare.zt", "x");
  fs::current_path(before);
  EXPECT_EQ(folder.entries(), Names{"bare.zt"});
}

TEST(AtomicFile, PublishNeedsASyncAfterTheLastWrite) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "out");
  EXPECT_THROW(file.publish(), std::logic_error);
  file.write_at(0, bytes("a"));
  file.sync(1);
  file.write_at(1, bytes("b"));
  EXPECT_THROW(file.publish(), std::logic_error);
  file.sync(2);
  file.publish();
  EXPECT_THROW(file.publish(), std::logic_error);
  EXPECT_EQ(read_file(folder / "out"), "ab");
}

TEST(AtomicFile, TheFinalSizeMayBeLessOrMoreThanExpected) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "less", {.replace = false, .expected_size = 1'000'000});
    file.write_at(0, bytes("abc"));
    file.sync(3);
    file.publish();
  }
  EXPECT_EQ(read_file(folder / "less"), "abc");
  {
    AtomicFile file(folder / "more", {.replace = false, .expected_size = 2});
    file.write_at(0, bytes("abc"));
    file.sync(5);
    file.publish();
  }
  EXPECT_EQ(read_file(folder / "more"), std::string("abc\0\0", 5));
}

TEST(AtomicFile, AnExistingTargetIsRefusedUnlessReplaceIsGiven) {
  const TemporaryFolder folder;
  write_file(folder / "out", "old");
  const Finding found = thrown([&] { AtomicFile file(folder / "out"); });
  EXPECT_EQ(found.rule, "misuse/output-exists");
  EXPECT_EQ(found.kind, Kind::misuse);
  EXPECT_EQ(found.message, "the file exists");
  EXPECT_TRUE(found.file.name.ends_with("/out")) << found.file.name;
  EXPECT_EQ(found.hint.name, "overwrite");
  EXPECT_EQ(folder.entries(), Names{"out"});
  publish_text(folder / "out", "new", true);
  EXPECT_EQ(read_file(folder / "out"), "new");
  EXPECT_EQ(folder.entries(), Names{"out"});
}

TEST(AtomicFile, ATargetThatAppearsMeanwhileIsNotOverwritten) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "out");
    file.write_at(0, bytes("mine"));
    file.sync(4);
    write_file(folder / "out", "theirs");
    EXPECT_EQ(thrown([&] { file.publish(); }).rule, "misuse/output-exists");
  }
  EXPECT_EQ(read_file(folder / "out"), "theirs");
  EXPECT_EQ(folder.entries(), Names{"out"});
}

TEST(AtomicFile, ANewFileHasTheUmasksModeAndAReplacedOneKeepsItsOwn) {
  const TemporaryFolder folder;
  const Umask mask(027);
  publish_text(folder / "new", "x");
  EXPECT_EQ(mode_of(folder / "new"), 0640U);
  for (const mode_t mode : {mode_t{0600}, mode_t{0666}, mode_t{0444}, mode_t{0755}}) {
    write_file(folder / "kept", "old");
    ASSERT_EQ(::chmod((folder / "kept").c_str(), mode), 0);
    {
      AtomicFile file(folder / "kept", {.replace = true});
      EXPECT_EQ(mode_of(file.temporary_path()), 0600U) << "a private file's successor is private from the start";
      file.write_at(0, bytes("new"));
      file.sync(3);
      file.publish();
    }
    EXPECT_EQ(mode_of(folder / "kept"), mode);
    EXPECT_EQ(read_file(folder / "kept"), "new");
    fs::remove(folder / "kept");
  }
}

TEST(AtomicFile, ALinkStaysALinkAndItsFileIsReplaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  write_file(folder / "real/file", "old");
  fs::create_symlink("second", folder / "link");
  fs::create_symlink("real/file", folder / "second");
  EXPECT_EQ(thrown([&] { AtomicFile file(folder / "link"); }).rule, "misuse/output-exists");
  publish_text(folder / "link", "new", true);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "second"));
  EXPECT_EQ(read_file(folder / "real/file"), "new");
  EXPECT_EQ(folder.entries(), (Names{"link", "real", "second"}));
}

TEST(AtomicFile, ALinkToNothingIsFilled) {
  const TemporaryFolder folder;
  fs::create_symlink("absent", folder / "link");
  publish_text(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "absent"), "new");
}

TEST(AtomicFile, ALinkOfSomebodyElseInAFolderForEverybodyIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another's link";
  const TemporaryFolder folder;
  fs::create_directory(folder / "tmp");
  ASSERT_EQ(::chmod((folder / "tmp").c_str(), 01777), 0);
  write_file(folder / "mine", "mine");
  for (const char* target : {"../mine", "../absent"}) {
    fs::create_symlink(target, folder / "tmp/out");
    ASSERT_EQ(::lchown((folder / "tmp/out").c_str(), 12345, 12345), 0);
    EXPECT_EQ(thrown([&] { AtomicFile file(folder / "tmp/out", {.replace = true}); }).rule, "io/create") << target;
    EXPECT_EQ(thrown([&] { resolve_target(folder / "tmp/out"); }).rule, "io/create") << target;
    fs::remove(folder / "tmp/out");
  }
  EXPECT_EQ(read_file(folder / "mine"), "mine");
  EXPECT_EQ(folder.entries(), (Names{"mine", "tmp"}));
}

TEST(AtomicFile, WhatCannotBeLookedAtIsNotTakenForAbsent) {
  const TemporaryFolder folder;
  EXPECT_EQ(thrown([&] { AtomicFile file(folder / std::string(300, 'x')); }).rule, "io/create");
}

TEST(AtomicFile, BeneathAFolderNoLinkIsFollowed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "out/sub");
  fs::create_directory(folder / "elsewhere");
  write_file(folder / "elsewhere/file", "theirs");
  fs::create_symlink("../elsewhere/file", folder / "out/file");
  fs::create_directory_symlink("../elsewhere", folder / "out/link");
  const auto rule = [&](const std::string& name) {
    return thrown([&] { AtomicFile file(folder / name, {.replace = true, .beneath = folder / "out"}); }).rule;
  };
  EXPECT_EQ(rule("out/file"), "misuse/output-kind");
  EXPECT_EQ(rule("out/link/file"), "io/open");
  AtomicFile file(folder / "out/sub/file", {.replace = true, .beneath = folder / "out"});
  file.write_whole(bytes("new"));
  file.publish();
  EXPECT_EQ(read_file(folder / "out/sub/file"), "new");
  EXPECT_EQ(read_file(folder / "elsewhere/file"), "theirs");
}

TEST(AtomicFile, ALoopOfLinksIsIo) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_EQ(thrown([&] { AtomicFile file(folder / "a"); }).kind, Kind::io);
}

TEST(AtomicFile, WhatIsNoRegularFileIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", folder / "link-to-fifo");
  for (const std::string& path : {folder.path(), folder / "", folder / "fifo", folder / "link-to-fifo",
                                  std::string("/dev/null"), folder / "absent/", folder / ".", folder / ".."})
    EXPECT_EQ(thrown([&] { AtomicFile file(path, {.replace = true}); }).rule, "misuse/output-kind") << path;
  EXPECT_EQ(thrown([&] { AtomicFile file(""); }).rule, "misuse/path");
  EXPECT_EQ(folder.entries(), (Names{"fifo", "link-to-fifo"}));
}

TEST(AtomicFile, AMissingFolderIsIo) {
  const TemporaryFolder folder;
  const Finding found = thrown([&] { AtomicFile file(folder / "absent/out"); });
  EXPECT_EQ(found.rule, "io/open");
  EXPECT_EQ(found.kind, Kind::io);
}

TEST(AtomicFile, StaleTemporariesGoAndLiveOnesAndOthersFilesStay) {
  const TemporaryFolder folder;
  const std::string stale = ".out.zt.weighbridge-0123456789abcdef.tmp";
  const Names others = {".out.zt.weighbridge-0123456789abcdeg.tmp", ".out.zt.weighbridge-0123.tmp",
                        ".other.weighbridge-0123456789abcdef.tmp", "out.zt.weighbridge-0123456789abcdef.tmp",
                        ".out.zt.weighbridge-0123456789abcdef.tmp.txt"};
  for (const std::string& name : others) write_file(folder / name, "x");
  write_file(folder / stale, "x");
  const AtomicFile live(folder / "out.zt");
  EXPECT_FALSE(fs::exists(folder / stale));
  const std::string live_name = fs::path(live.temporary_path()).filename().string();
  publish_text(folder / "out.zt", "second");
  Names expected = others;
  expected.insert({"out.zt", live_name});
  EXPECT_EQ(folder.entries(), expected);
}

TEST(AtomicFile, ATemporaryOfAKilledProcessGoesWithTheNextRun) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(folder / "out", {.replace = true, .expected_size = 10});
    file.write_at(0, bytes("half"));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(folder.entries().size(), 1U);
  publish_text(folder / "out", "whole");
  EXPECT_EQ(folder.entries(), Names{"out"});
  EXPECT_EQ(read_file(folder / "out"), "whole");
}

TEST(AtomicFile, AStaleNameThatIsALinkOrFolderIsLeftAlone) {
  const TemporaryFolder folder;
  write_file(folder / "precious", "p");
  fs::create_symlink("precious", folder / ".out.weighbridge-0000000000000000.tmp");
  fs::create_directory(folder / ".out.weighbridge-0000000000000001.tmp");
  publish_text(folder / "out", "x");
  EXPECT_EQ(read_file(folder / "precious"), "p");
  EXPECT_EQ(folder.entries().size(), 4U);
}

TEST(AtomicFile, TheLongestNamesWork) {
  const TemporaryFolder folder;
  std::string name(254, 'n');
  publish_text(folder / (name + "x"), "x");
  name.clear();
  while (name.size() < 254) name += "\xc3\xa9";
  publish_text(folder / name, "y");
  EXPECT_EQ(folder.entries().size(), 2U);
  EXPECT_EQ(read_file(folder / name), "y");
}

TEST(AtomicFile, ManyWritersOfOneTargetLeaveOneWholeFile) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int round = 0; round < 25; ++round)
        publish_text(folder / "out", std::string(1000, static_cast<char>('a' + w)), true);
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(folder.entries(), Names{"out"});
  const std::string text = read_file(folder / "out");
  EXPECT_EQ(text, std::string(1000, text.at(0)));
}

TEST(AtomicFile, SeveralThreadsWriteItsRanges) {
  const TemporaryFolder folder;
  constexpr std::size_t kPiece = 1000, kPieces = 64;
  {
    AtomicFile file(folder / "out", {.replace = false, .expected_size = kPiece * kPieces});
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t p = t; p < kPieces; p += 4) {
          file.write_at(p * kPiece, bytes(std::string(kPiece, static_cast<char>('0' + p))));
          file.hint_written(p * kPiece, kPiece);
        }
      });
    for (std::thread& thread : threads) thread.join();
    file.hint_written(0, std::uint64_t{64} << 20);  // past the end: a hint cannot fail
    file.sync(kPiece * kPieces);
    file.publish();
  }
  const std::string text = read_file(folder / "out");
  ASSERT_EQ(text.size(), kPiece * kPieces);
  for (std::size_t i = 0; i < text.size(); ++i) ASSERT_EQ(text[i], static_cast<char>('0' + i / kPiece)) << i;
}

TEST(AtomicFile, ReopenReadsWhatWasWritten) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "out.zt");
  file.write_at(0, bytes("hello"));
  file.sync(5);
  const auto source = file.reopen();
  EXPECT_EQ(source->size(), 5U);
  EXPECT_EQ(source->name(), file.temporary_path());
  std::string text(5, '\0');
  source->read_at(0, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "hello");
  source->check_unchanged();
}

// Limits the size of files while it lives, which writers see as a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t limit) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(AtomicFile, NoRoomIsIoAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder / "out", "old");
  {
    const FileSizeLimit limit(4096);
    EXPECT_EQ(thrown([&] { AtomicFile file(folder / "out", {.replace = true, .expected_size = 8192}); }).rule,
              "io/write");
    EXPECT_EQ(folder.entries(), Names{"out"});
    AtomicFile file(folder / "out", {.replace = true});
    const Finding found = thrown([&] { file.write_at(0, bytes(std::string(8192, 'x'))); });
    EXPECT_EQ(found.rule, "io/write");
    EXPECT_EQ(found.kind, Kind::io);
  }
  EXPECT_EQ(folder.entries(), Names{"out"});
  EXPECT_EQ(read_file(folder / "out"), "old");
  EXPECT_EQ(
      thrown([&] { AtomicFile file(folder / "new", {.replace = false, .expected_size = ~std::uint64_t{0}}); }).rule,
      "io/write");
  EXPECT_EQ(folder.entries(), Names{"out"});
}

TEST(SameFile, LooksThroughLinks) {
  const TemporaryFolder folder;
  write_file(folder / "a", "x");
  write_file(folder / "b", "x");
  fs::create_symlink("a", folder / "soft");
  fs::create_hard_link(folder / "a", folder / "hard");
  EXPECT_TRUE(same_file(folder / "a", folder / "a"));
  EXPECT_TRUE(same_file(folder / "a", folder / "soft"));
  EXPECT_TRUE(same_file(folder / "soft", folder / "hard"));
  EXPECT_FALSE(same_file(folder / "a", folder / "b"));
  EXPECT_FALSE(same_file(folder / "a", folder / "absent"));
  EXPECT_FALSE(same_file(folder / "absent", folder / "absent"));
}

TEST(SameFile, FindsTheOutputAmongFilesAndModelsInMemory) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) write_file(folder / name, "x");
  const std::vector<std::shared_ptr<const Source>> sources = {
      memory_source({}), memory_source({}), open_file(folder / "a"), memory_source({}), open_file(folder / "b")};
  EXPECT_EQ(find_file(folder / "b", sources), sources[4].get());
  EXPECT_EQ(find_file(folder / "b", sources, sources[4].get()), nullptr);
  EXPECT_EQ(find_file(folder / "absent", sources), nullptr);
}

}  // namespace
}  // namespace weighbridge::io

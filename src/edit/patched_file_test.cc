// SPDX-License-Identifier: Apache-2.0
// Changes in place: what a kill leaves at each step, what the next run makes of it, and journals that must not be used.
#include "edit/patched_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "io/journal.h"
#include "support/state_home.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace weighbridge::edit_files {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Left = Edited::Left;

constexpr std::uint64_t kMaxHeader = 1 << 20;
const std::string kOld = "old header|payload", kNew = "new header|payload";
const Patch kPatch{0, 10, "new header"};

std::string journal_of(const TemporaryFolder& folder) { return folder / ".f.weighbridge-edit.journal"; }
std::string undo_of(const TemporaryFolder& folder) { return folder / ".f.weighbridge-edit.undo"; }

void undo(const std::string& path) {
  PatchedFile file(path, kMaxHeader);
  file.apply(file.undo());
}

// The file as new or old, and the undo file of the change renamed to a journal, as a kill leaves it.
void make_left(const TemporaryFolder& folder, const std::string& content) {
  write_file(folder / "f", kOld);
  PatchedFile(folder / "f", kMaxHeader).apply(kPatch);
  fs::rename(undo_of(folder), journal_of(folder));
  const int fd = ::open((folder / "f").c_str(), O_WRONLY | O_TRUNC);  // the same inode
  ASSERT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  ::close(fd);
}

TEST(PatchedFile, ChangesOnlyTheBytesAndKeepsTheOldOnes) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  {
    PatchedFile file(folder / "f", kMaxHeader);
    EXPECT_EQ(file.left(), Left::nothing);
    EXPECT_EQ(file.names(), 1U);
    file.apply(kPatch);
  }  // with it goes the lease, for which a reader would wait
  EXPECT_EQ(read_file(folder / "f"), kNew);
  EXPECT_EQ(folder.entries(), (std::set<std::string>{"f", ".f.weighbridge-edit.undo"}));
  undo(folder / "f");
  EXPECT_EQ(read_file(folder / "f"), kOld);
  undo(folder / "f");
  EXPECT_EQ(read_file(folder / "f"), kNew) << "undoing the undo does it again";
}

// As a run does that the lock of the first one has refused.
TEST(PatchedFile, AProcessThatClosesTheFileAtOnceIsNoReason) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open((folder / "f").c_str(), O_RDONLY);
    if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
    ::usleep(20'000);
    ::close(fd);
    ::_exit(0);
  }
  char opened = 0;
  ASSERT_EQ(::read(pipe[0], &opened, 1), 1);
  PatchedFile(folder / "f", kMaxHeader).apply(kPatch);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_EQ(read_file(folder / "f"), kNew);
}

TEST(PatchedFile, ADamagedUndoFileIsNoKilledRun) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  PatchedFile(folder / "f", kMaxHeader).apply(kPatch);
  write_file(undo_of(folder), read_file(undo_of(folder)).substr(0, 20));
  const Finding found = thrown([&] { undo(folder / "f"); });
  EXPECT_EQ(found.rule, "io/journal");
  EXPECT_EQ(found.message.find("killed"), std::string::npos) << found.message;
  EXPECT_EQ(read_file(folder / "f"), kNew);
}

TEST(PatchedFile, TheEndOfAFileGrowsAndShrinks) {
  for (const std::string& end : {std::string("a much longer end than before"), std::string("short"), std::string()}) {
    const TemporaryFolder folder;
    write_file(folder / "f", "payload|the end");
    {
      PatchedFile file(folder / "f", kMaxHeader);
      file.apply({8, 7, end});
    }
    EXPECT_EQ(read_file(folder / "f"), "payload|" + end);
    undo(folder / "f");
    EXPECT_EQ(read_file(folder / "f"), "payload|the end");
  }
}

TEST(PatchedFile, NothingChangesIfTheBytesAreTheSame) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  PatchedFile(folder / "f", kMaxHeader).apply({0, 10, "old header"});
  EXPECT_EQ(folder.entries(), std::set<std::string>{"f"});
}

TEST(PatchedFile, ALengthChangesOnlyAtTheEnd) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  {
    PatchedFile file(folder / "f", kMaxHeader);
    EXPECT_EQ(thrown([&] { file.apply({0, 10, "longer than before"}); }).rule, "misuse/range");
    EXPECT_EQ(thrown([&] { file.apply({15, 10, "0123456789"}); }).rule, "misuse/range");
  }
  EXPECT_EQ(read_file(folder / "f"), kOld);
}

TEST(PatchedFile, TheNextRunSettlesWhatAKillLeft) {
  struct Case {
    std::string content;
    Left left;
    std::string after;
  };
  for (const Case& each :
       {Case{kOld, Left::undone, kOld}, Case{kNew, Left::finished, kNew}, Case{"neo header|payload", Left::nothing, {}},
        Case{"nlw header|payload", Left::undone, kOld}}) {
    const TemporaryFolder folder;
    make_left(folder, each.content);
    if (each.after.empty()) {  // a byte that is neither
      EXPECT_EQ(thrown([&] { PatchedFile(folder / "f", kMaxHeader); }).rule, "io/journal");
      EXPECT_EQ(read_file(folder / "f"), each.content);
      EXPECT_TRUE(fs::exists(journal_of(folder)));
      continue;
    }
    EXPECT_EQ(io::left_edit_journal(folder / "f"), journal_of(folder));
    EXPECT_EQ(PatchedFile(folder / "f", kMaxHeader).left(), each.left) << each.content;
    EXPECT_EQ(read_file(folder / "f"), each.after);
    EXPECT_FALSE(fs::exists(journal_of(folder)));
    EXPECT_EQ(fs::exists(undo_of(folder)), each.left == Left::finished);
  }
}

TEST(PatchedFile, AFileThatShrankInTheMiddleOfAChangeIsRestored) {
  const TemporaryFolder folder;
  write_file(folder / "f", "payload|the old end");
  PatchedFile(folder / "f", kMaxHeader).apply({8, 11, "new"});
  fs::rename(undo_of(folder), journal_of(folder));
  const int fd = ::open((folder / "f").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "newhold end", 11, 8), 11);  // three new bytes, one that is neither
  ::close(fd);
  EXPECT_EQ(thrown([&] { PatchedFile(folder / "f", kMaxHeader); }).rule, "io/journal");
  const int again = ::open((folder / "f").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(again, "new old end", 11, 8), 11);
  ::close(again);
  EXPECT_EQ(PatchedFile(folder / "f", kMaxHeader).left(), Left::undone);
  EXPECT_EQ(read_file(folder / "f"), "payload|the old end");
}

TEST(PatchedFile, AJournalThatIsDamagedOrOfAnotherFileIsNotUsed) {
  const auto refused = [](const char* what, auto&& change) {
    const TemporaryFolder folder;
    make_left(folder, kNew);
    change(folder);
    const std::string before = read_file(folder / "f");
    const Finding found = thrown([&] { PatchedFile(folder / "f", kMaxHeader); });
    EXPECT_EQ(found.rule, "io/journal") << what;
    EXPECT_NE(found.message.find("journal"), std::string::npos);
    EXPECT_EQ(read_file(folder / "f"), before) << what;
  };
  refused("cut", [](const TemporaryFolder& f) { fs::resize_file(journal_of(f), 60); });
  refused("empty", [](const TemporaryFolder& f) { fs::resize_file(journal_of(f), 0); });
  refused("huge", [](const TemporaryFolder& f) { fs::resize_file(journal_of(f), 2 * kMaxHeader); });
  refused("a changed byte", [](const TemporaryFolder& f) {
    std::string text = read_file(journal_of(f));
    text[40] = static_cast<char>(text[40] ^ 1);
    write_file(journal_of(f), text);
  });
  refused("another file has the name", [](const TemporaryFolder& f) {
    write_file(f / "other", kOld);
    fs::rename(f / "other", f / "f");
  });
  refused("the file has grown since", [](const TemporaryFolder& f) { fs::resize_file(f / "f", 100); });
  refused("a link", [](const TemporaryFolder& f) {
    fs::rename(journal_of(f), f / "elsewhere");
    fs::create_symlink("elsewhere", journal_of(f));
  });
  refused("a folder", [](const TemporaryFolder& f) {
    fs::remove(journal_of(f));
    fs::create_directory(journal_of(f));
  });
}

// Whatever lay beside a file under the name of a journal was written into the file.
TEST(PatchedFile, AJournalWithoutThisUsersMarkIsUsedOnlyIfItIsTrusted) {
  using Way = RecoveryStep::Way;
  const test::StateHome home;
  const std::string mixed = "nlw header|payload";
  const auto require = [&](const char* what, auto&& left, auto&& refused_in) {
    const TemporaryFolder folder;
    left(folder);
    const Finding found = thrown([&] { refused_in(), PatchedFile(folder / "f", kMaxHeader); });
    EXPECT_EQ(found.rule, "io/journal") << what;
    EXPECT_EQ(found.hint.name, "trust-journal") << what;
    EXPECT_NE(found.message.find(journal_of(folder)), std::string::npos) << found.message;
    EXPECT_EQ(read_file(folder / "f"), mixed) << what;
    std::vector<RecoveryStep> shown;
    const PatchedFile settled(folder / "f", kMaxHeader, Trust::any, [&](const auto& steps) { shown = steps; });
    test::StateHome::set(home.path().c_str());
    EXPECT_EQ(settled.left(), Left::undone) << what;
    EXPECT_EQ(shown, (std::vector<RecoveryStep>{{.way = Way::write, .from = "f", .offset = 0, .length = 3},
                                                {.way = Way::remove, .from = ".f.weighbridge-edit.journal"}}));
  };
  const auto marked = [&](const TemporaryFolder& folder) { make_left(folder, mixed); };
  const auto here = [] {};
  require("without a home", marked, [] { test::StateHome::set(nullptr); });
  const TemporaryFolder other;
  require("another home", marked, [&] { test::StateHome::set(other.path().c_str()); });
  require(
      "written without a home",
      [&](const TemporaryFolder& folder) {
        test::StateHome::set(nullptr);
        make_left(folder, mixed);
        test::StateHome::set(home.path().c_str());
      },
      here);
  require(
      "a copy",
      [&](const TemporaryFolder& folder) {
        make_left(folder, mixed);
        fs::copy_file(journal_of(folder), folder / "copy");
        fs::rename(folder / "copy", journal_of(folder));
      },
      here);
  require(
      "others can write to it",
      [&](const TemporaryFolder& folder) {
        make_left(folder, mixed);
        ASSERT_EQ(::chmod(journal_of(folder).c_str(), 0622), 0);
      },
      here);
  require(
      "a hard link",
      [&](const TemporaryFolder& folder) {
        make_left(folder, mixed);
        fs::create_hard_link(journal_of(folder), folder / "kept");
      },
      here);
}

TEST(PatchedFile, AnUndoFileWithoutThisUsersMarkIsUsedOnlyIfItIsTrusted) {
  const test::StateHome home;
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  test::StateHome::set(nullptr);
  PatchedFile(folder / "f", kMaxHeader).apply(kPatch);
  test::StateHome::set(home.path().c_str());
  const Finding found = thrown([&] { undo(folder / "f"); });
  EXPECT_EQ(found.rule, "io/journal");
  EXPECT_EQ(found.hint.name, "trust-journal");
  EXPECT_EQ(read_file(folder / "f"), kNew);
  {
    PatchedFile file(folder / "f", kMaxHeader, Trust::any);
    file.apply(file.undo());
  }
  EXPECT_EQ(read_file(folder / "f"), kOld);
}

// Every number of a journal set to extremes, with its checksum made right again, is refused or harmless.
TEST(PatchedFile, AHostileJournalNeverMakesAThirdFile) {
  const TemporaryFolder folder;
  make_left(folder, kNew);
  const std::string whole = read_file(journal_of(folder));
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int flip : {1, 0x80, 0xff}) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ flip);
      write_file(journal_of(folder), text);
      EXPECT_EQ(thrown([&] { PatchedFile(folder / "f", kMaxHeader); }).rule, "io/journal") << at;
      ASSERT_EQ(read_file(folder / "f"), kNew);
    }
}

TEST(PatchedFile, AFileThatAnotherProcessHasOpenIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  {
    const PatchedFile first(folder / "f", kMaxHeader);
    EXPECT_EQ(thrown([&] { PatchedFile(folder / "f", kMaxHeader); }).rule, "io/in-use") << "two editors at once";
  }
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready) | ::pipe(done), 0);
  const pid_t reader = ::fork();
  if (reader == 0) {
    const int fd = ::open((folder / "f").c_str(), O_RDONLY);
    char byte = fd >= 0 ? 'r' : 'x';
    static_cast<void>(!::write(ready[1], &byte, 1));
    static_cast<void>(!::read(done[0], &byte, 1));
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::optional<Finding> found;
  bool alone = false;
  try {
    alone = PatchedFile(folder / "f", kMaxHeader).alone();
  } catch (const Error& error) {
    found = error.finding();
  }
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  ASSERT_EQ(::waitpid(reader, nullptr, 0), reader);
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  if (!found && !alone) GTEST_SKIP() << "this filesystem has no leases, so nothing tells who has the file open";
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rule, "io/in-use");
  EXPECT_TRUE(PatchedFile(folder / "f", kMaxHeader).alone());
}

TEST(PatchedFile, WhatMayNotBeChangedIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  ASSERT_EQ(::chmod((folder / "f").c_str(), 0444), 0);
  EXPECT_EQ(thrown([&] { PatchedFile(folder / "f", kMaxHeader); }).rule, "misuse/read-only");
  ASSERT_EQ(::chmod((folder / "f").c_str(), 0644), 0);
  EXPECT_EQ(thrown([&] { PatchedFile(folder / "absent", kMaxHeader); }).rule, "io/open");
  EXPECT_EQ(thrown([&] { PatchedFile(folder.path() + "/", kMaxHeader); }).rule, "misuse/output-kind");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(thrown([&] { PatchedFile(folder / "fifo", kMaxHeader); }).rule, "misuse/not-a-file");
  fs::create_directories(folder / "blobs");
  const std::string blob = folder / ("blobs/" + std::string(64, 'a'));
  write_file(blob, kOld);
  fs::create_symlink(blob, folder / "snapshot");
  EXPECT_EQ(thrown([&] { PatchedFile(folder / "snapshot", kMaxHeader); }).rule, "misuse/hub-cache");
  EXPECT_EQ(read_file(blob), kOld);
}

TEST(PatchedFile, ALinkIsFollowedAndEveryNameOfTheFileChanges) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  write_file(folder / "real/f", kOld);
  fs::create_symlink("real/f", folder / "link");
  fs::create_hard_link(folder / "real/f", folder / "second");
  {
    PatchedFile file(folder / "link", kMaxHeader);
    EXPECT_EQ(file.names(), 2U);
    file.apply(kPatch);
  }
  EXPECT_EQ(read_file(folder / "second"), kNew);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::exists(folder / "real/.f.weighbridge-edit.undo")) << "beside the file, not beside the link";
}

TEST(PatchedFile, AnUndoOfAnotherFileIsRefused) {
  const TemporaryFolder folder;
  write_file(folder / "f", kOld);
  EXPECT_EQ(thrown([&] { static_cast<void>(PatchedFile(folder / "f", kMaxHeader).undo()); }).rule, "misuse/no-undo");
  PatchedFile(folder / "f", kMaxHeader).apply(kPatch);
  {
    const int fd = ::open((folder / "f").c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(fd, "X", 1, 4), 1);
    ::close(fd);
  }
  EXPECT_EQ(thrown([&] { static_cast<void>(PatchedFile(folder / "f", kMaxHeader).undo()); }).rule, "misuse/no-undo");
  write_file(folder / "other", kNew);
  fs::rename(folder / "other", folder / "f");
  EXPECT_EQ(thrown([&] { static_cast<void>(PatchedFile(folder / "f", kMaxHeader).undo()); }).rule, "misuse/no-undo");
}

TEST(PatchedFile, TheLongestNamesHaveJournalsOfTheirOwn) {
  const TemporaryFolder folder;
  const std::string one = std::string(254, 'n') + "1", two = std::string(254, 'n') + "2";
  for (const std::string& name : {one, two}) {
    write_file(folder / name, kOld);
    PatchedFile(folder / name, kMaxHeader).apply(kPatch);
    EXPECT_EQ(read_file(folder / name), kNew);
  }
  EXPECT_EQ(folder.entries().size(), 4U);
}

}  // namespace
}  // namespace weighbridge::edit_files

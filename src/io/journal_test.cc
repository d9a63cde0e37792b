// SPDX-License-Identifier: Apache-2.0
// What a killed run leaves of a change of several names, and what the next run makes of it.
#include "io/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <stdexcept>

#include "io/atomic_file.h"
#include "support/state_home.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace weighbridge::io {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Files = std::map<std::string, std::string>;

Files files_of(const TemporaryFolder& folder) {
  Files out;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file())
      out.emplace(fs::relative(entry.path(), folder.path()).string(), read_file(entry.path().string()));
  return out;
}

// Runs `work` in a process that ends without destroying anything, as a killed one does.
template <typename Work> void killed_after(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

const std::vector<Journal::Change> kChanges{{"main", ".s.weighbridge-00000000000000aa.tmp/main"},
                                            {"a", ".s.weighbridge-00000000000000aa.tmp/a"},
                                            {"below/b", ".s.weighbridge-00000000000000aa.tmp/b"},
                                            {"gone"}};

Files make_files(const TemporaryFolder& folder, bool with_b) {
  fs::create_directories(folder / ".s.weighbridge-00000000000000aa.tmp");
  fs::create_directories(folder / "below");
  for (const char* name : {"main", "a", "gone", "mine"}) write_file(folder / name, std::string("old ") + name);
  if (with_b) write_file(folder / "below/b", "old b");
  Files old = files_of(folder);
  for (const char* name : {".s.weighbridge-00000000000000aa.tmp/main", ".s.weighbridge-00000000000000aa.tmp/a",
                           ".s.weighbridge-00000000000000aa.tmp/b"})
    write_file(folder / name, std::string("new fresh/") + fs::path(name).filename().string());
  return old;
}

TEST(Journal, TheNextRunRestoresTheOldFilesAfterAKillAtAnyStep) {
  const test::StateHome home;
  for (const bool with_b : {false, true})
    for (int steps = 0; steps <= 4; ++steps) {
      const TemporaryFolder folder;
      const Files old = make_files(folder, with_b);
      killed_after([&] {
        Journal& journal = *new Journal(folder.path(), kChanges);
        if (steps >= 1) journal.set_aside();
        for (std::size_t i = 3; i-- > 0;)
          if (steps >= 4 - static_cast<int>(i)) journal.move(i);
      });
      EXPECT_TRUE(recover(folder.path()).did);
      fs::remove_all(folder / ".s.weighbridge-00000000000000aa.tmp");
      EXPECT_EQ(files_of(folder), old) << "after step " << steps;
      EXPECT_FALSE(recover(folder.path()).did);
    }
}

TEST(Journal, ExchangedFilesAreExchangedBack) {
  const test::StateHome home;
  const TemporaryFolder folder;
  const Files old = make_files(folder, false);
  killed_after([&] {
    Journal& journal = *new Journal(folder.path(), kChanges);
    for (const std::size_t i : {0U, 1U, 2U}) journal.move(i);
  });
  EXPECT_EQ(read_file(folder / "main"), "new fresh/main");
  EXPECT_TRUE(recover(folder.path()).did);
  fs::remove_all(folder / ".s.weighbridge-00000000000000aa.tmp");
  EXPECT_EQ(files_of(folder), old);
}

TEST(Journal, WhatIsCommittedStaysAndTheOldFilesGo) {
  const test::StateHome home;
  const TemporaryFolder folder;
  make_files(folder, true);
  {
    Journal journal(folder.path(), kChanges);
    journal.set_aside();
    for (const std::size_t i : {2U, 1U, 0U}) EXPECT_EQ(journal.move(i), 0);
    journal.commit();
  }
  const Files now{{"a", "new fresh/a"}, {"below/b", "new fresh/b"}, {"main", "new fresh/main"}, {"mine", "old mine"}};
  EXPECT_EQ(files_of(folder), now);
  // A kill after the journal was removed leaves old files, which are no longer needed.
  write_file(folder / ".main.weighbridge-0123456789abcdef.old", "old main");
  EXPECT_TRUE(recover(folder.path()).did);
  EXPECT_EQ(files_of(folder), now);
}

TEST(Journal, AFileThatTookTheNameMeanwhileIsNotReplacedAndNothingIsLost) {
  const test::StateHome home;
  const TemporaryFolder folder;
  make_files(folder, true);
  killed_after([&] { (new Journal(folder.path(), kChanges))->set_aside(); });
  write_file(folder / "a", "a person's");
  const Finding found = thrown([&] { AtomicFile file(folder / "a", {.replace = true}); });
  EXPECT_EQ(found.rule, "io/half-published");
  EXPECT_NE(found.message.find("'a'"), std::string::npos) << found.message;
  EXPECT_EQ(read_file(folder / "a"), "a person's");
  { const AtomicFile file(folder / "other"); }  // a name that the journal does not list
  fs::remove(folder / "a");
  const AtomicFile file(folder / "other");
  for (const char* name : {"main", "a", "gone"}) EXPECT_EQ(read_file(folder / name), std::string("old ") + name);
}

// Whether the new file is the one that the journal lists cannot be found out without a descriptor.
TEST(Journal, AChangeThatCannotBeLookedAtIsNotTakenForUndone) {
  const test::StateHome home;
  const TemporaryFolder folder;
  write_file(folder / ".a.weighbridge-00000000000000aa.tmp", "new");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  {
    Journal journal(folder.path(), {{"a", ".a.weighbridge-00000000000000aa.tmp"}});
    ASSERT_EQ(journal.move(0), 0);
    const rlimit none{0, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_TRUE(recover(folder.path()).did) << "the journal is still there";
  EXPECT_EQ(files_of(folder), Files{});
}

TEST(Journal, OneThatWasNeverFinishedChangedNothing) {
  for (const std::string& text : {std::string("weighbridge journal 1\0main\0", 27), std::string("weighbr"),
                                  std::string(), std::string(40, '\0')}) {
    const TemporaryFolder folder;
    write_file(folder / "main", "old");
    write_file(folder / ".weighbridge-0123456789abcdef.journal", text);
    EXPECT_TRUE(recover(folder.path()).did);
    EXPECT_EQ(files_of(folder), (Files{{"main", "old"}}));
  }
}

TEST(Journal, LocksTheFolderBeforeTheNamesOfTheProcess) {
  const TemporaryFolder folder;
  const NamesChange changing;
  EXPECT_THROW(Journal(folder.path(), {{"a"}}), std::logic_error);
}

}  // namespace
}  // namespace weighbridge::io

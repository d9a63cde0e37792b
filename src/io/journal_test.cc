// SPDX-License-Identifier: Apache-2.0
// What a killed run leaves of a change of several names, and what the next run makes of it.
#include "io/journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "io/atomic_file.h"
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

const std::vector<Journal::Change> kChanges{{"main", "fresh/main"}, {"a", "fresh/a"}, {"below/b", "fresh/b"}, {"gone"}};

Files make_files(const TemporaryFolder& folder, bool with_b) {
  fs::create_directories(folder / "fresh");
  fs::create_directories(folder / "below");
  for (const char* name : {"main", "a", "gone", "mine"}) write_file(folder / name, std::string("old ") + name);
  if (with_b) write_file(folder / "below/b", "old b");
  Files old = files_of(folder);
  for (const char* name : {"fresh/main", "fresh/a", "fresh/b"}) write_file(folder / name, std::string("new ") + name);
  return old;
}

TEST(Journal, TheNextRunRestoresTheOldFilesAfterAKillAtAnyStep) {
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
      EXPECT_TRUE(recover(folder.path()));
      fs::remove_all(folder / "fresh");
      EXPECT_EQ(files_of(folder), old) << "after step " << steps;
      EXPECT_FALSE(recover(folder.path()));
    }
}

TEST(Journal, ExchangedFilesAreExchangedBack) {
  const TemporaryFolder folder;
  const Files old = make_files(folder, false);
  killed_after([&] {
    Journal& journal = *new Journal(folder.path(), kChanges);
    for (const std::size_t i : {0U, 1U, 2U}) journal.move(i);
  });
  EXPECT_EQ(read_file(folder / "main"), "new fresh/main");
  EXPECT_TRUE(recover(folder.path()));
  fs::remove_all(folder / "fresh");
  EXPECT_EQ(files_of(folder), old);
}

TEST(Journal, WhatIsCommittedStaysAndTheOldFilesGo) {
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
  EXPECT_TRUE(recover(folder.path()));
  EXPECT_EQ(files_of(folder), now);
}

TEST(Journal, AFileThatTookTheNameMeanwhileIsNotReplacedAndNothingIsLost) {
  const TemporaryFolder folder;
  make_files(folder, true);
  killed_after([&] { (new Journal(folder.path(), kChanges))->set_aside(); });
  write_file(folder / "a", "a person's");
  const Finding found = thrown([&] { AtomicFile file(folder / "other"); });
  EXPECT_EQ(found.rule, "io/publish");
  EXPECT_NE(found.message.find("'a'"), std::string::npos) << found.message;
  EXPECT_EQ(read_file(folder / "a"), "a person's");
  fs::remove(folder / "a");
  const AtomicFile file(folder / "other");
  for (const char* name : {"main", "a", "gone"}) EXPECT_EQ(read_file(folder / name), std::string("old ") + name);
}

TEST(Journal, OneThatWasNeverFinishedChangedNothing) {
  const TemporaryFolder folder;
  write_file(folder / "main", "old");
  write_file(folder / ".weighbridge-0123456789abcdef.journal", std::string("weighbridge journal 1\0main\0", 27));
  EXPECT_TRUE(recover(folder.path()));
  EXPECT_EQ(files_of(folder), (Files{{"main", "old"}}));
}

TEST(Journal, ANameThatLeadsOutOfTheFolderIsRefused) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "in");
  write_file(folder / "in/.a.weighbridge-0123456789abcdef.old", "planted");
  std::string text;
  for (const char* field :
       {"weighbridge journal 1", "../a", "", ".a.weighbridge-0123456789abcdef.old", "0", "0", "end"})
    text.append(field).push_back('\0');
  write_file(folder / "in/.weighbridge-0123456789abcdef.journal", text);
  EXPECT_EQ(thrown([&] { recover(folder / "in"); }).rule, "io/publish");
  EXPECT_FALSE(fs::exists(folder / "a"));
}

}  // namespace
}  // namespace weighbridge::io

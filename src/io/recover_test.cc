// SPDX-License-Identifier: Apache-2.0
// Journals that others planted, and the key that marks this user's own.
#include "weighbridge/recover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <set>

#include "io/atomic_file.h"
#include "io/journal.h"
#include "support/sanitized.h"
#include "support/state_home.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "support/unprivileged.h"

namespace weighbridge::io {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::StateHome;
using test::TemporaryFolder;
using test::thrown;
using test::write_file;
using Fields = std::vector<std::string>;

const std::string kJournal = ".weighbridge-0123456789abcdef.journal", kOld = ".x.weighbridge-0123456789abcdef.old",
                  kTemporary = ".a.weighbridge-00000000000000aa.tmp";

std::string inode_of(const std::string& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 ? std::to_string(there.st_ino) : "0";
}
std::string journal_text(const std::string& first, const std::vector<Fields>& entries) {
  std::string out = first + '\0';
  if (first.ends_with('2')) out += std::string(64, '0') + '\0';
  for (const Fields& entry : entries) {
    for (const std::string& field : entry) out += field + '\0';
    if (first.ends_with('2')) out += "3" + std::string(1, '\0') + "1700000000000000000" + '\0';
  }
  return out + std::string("end") + '\0';
}
// With the size and the time that journal_text() states.
void write_new(const std::string& path) {
  write_file(path, "new");
  const struct timespec times[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}
// Other bytes in the same file, which keeps its time.
void rewrite(const std::string& path, const std::string& text) {
  struct stat before {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  write_file(path, text);
  const struct timespec times[2] = {before.st_mtim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}
void plant(const std::string& folder, const std::vector<Fields>& entries, const std::string& version = "2") {
  write_file(folder + "/" + kJournal, journal_text("weighbridge journal " + version, entries));
}
// A run that sets the old files aside and moves the first new one, and is killed.
void kill_half_way(const std::string& folder, const char* name = "a") {
  write_file(folder + "/" + name, "old");
  write_file(folder + "/" + kTemporary, "new");
  const pid_t child = ::fork();
  if (child == 0) {
    Journal& journal = *new Journal(folder, {{name, kTemporary}});
    journal.set_aside();
    ::_exit(journal.move(0) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}
std::string journal_in(const TemporaryFolder& folder) {
  for (const std::string& each : folder.entries())
    if (is_journal(each)) return folder / each;
  return {};
}

// A journal that was unpacked with an archive took the user's files away by their inodes.
TEST(PlantedJournal, TakesNoFileAway) {
  for (const char* version : {"1", "2"}) {
    const StateHome home;
    const TemporaryFolder folder;
    write_file(folder / "thesis.tex", "precious");
    plant(folder.path(), {{"thesis.tex", kTemporary, "", inode_of(folder / "thesis.tex"), "0"}}, version);
    { const AtomicFile file(folder / "b.zt"); }
    EXPECT_EQ(read_file(folder / "thesis.tex"), "precious");
    const auto left = left_journals(folder.path());
    ASSERT_EQ(left.size(), 1U);
    EXPECT_FALSE(left[0].own);
    EXPECT_NE(left[0].why, "");
    const Finding found = thrown([&] { const AtomicFile file(folder / "thesis.tex", {.replace = true}); });
    EXPECT_EQ(found.rule, "io/half-published");
    EXPECT_EQ(found.hint.name, "trust-journal");
    EXPECT_NE(found.message.find(folder / kJournal), std::string::npos) << found.message;
  }
}

// It stated half a million inodes for one name, and took minutes.
TEST(PlantedJournal, WithManyEntriesTakesNoTime) {
  const StateHome home;
  const TemporaryFolder folder;
  write_file(folder / "thesis.tex", "precious");
  std::vector<Fields> entries;
  for (int i = 0; i < 100'000; ++i) entries.push_back({"thesis.tex", kTemporary, "", std::to_string(i), "0"});
  plant(folder.path(), entries);
  for (int i = 0; i < 80; ++i)
    fs::create_hard_link(folder / kJournal,
                         folder / (".weighbridge-00000000000000" + std::to_string(10 + i) + ".journal"));
  const auto begin = std::chrono::steady_clock::now();
  { const AtomicFile file(folder / "b.zt"); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(test::kSanitized ? 60 : 5));
  EXPECT_EQ(thrown([&] { recover_folder(folder.path(), true); }).rule, "io/half-published") << "a name twice";
  EXPECT_EQ(read_file(folder / "thesis.tex"), "precious");
}

TEST(PlantedJournal, OfMoreThan32MiBIsNotRead) {
  const StateHome home;
  const TemporaryFolder folder;
  for (const bool more : {false, true}) {
    write_file(folder / kJournal, "");
    fs::resize_file(folder / kJournal, (std::uintmax_t{32} << 20) + (more ? 1U : 0U));
    const Recovered left = recover(folder.path());
    ASSERT_EQ(left.standing.size(), 1U);
    EXPECT_NE(left.standing[0].why.find(more ? "larger than" : "damaged"), std::string::npos) << left.standing[0].why;
  }
}

TEST(PlantedJournal, BlocksNoOtherName) {
  const StateHome home;
  const Fields good{"a", "", kOld, "0", "1"};
  const std::vector<std::vector<Fields>> planted{
      {{"../a", "", kOld, "0", "1"}},
      {{"/a", "", kOld, "0", "1"}},
      {{"a/./b", "", kOld, "0", "1"}},
      {{"a", "plain", "", "1", "0"}},
      {{"a", "", ".bashrc", "0", "1"}},
      {{"a", "", "sub/" + kOld, "0", "1"}},
      {{"a", "", kOld, "-1", "1"}},
      {good, good},
      {{std::string(300, 'a'), "", kOld, "0", "1"}},
      {{"a/a/a/a/a/a/a/a/a", "", kOld, "0", "1"}},
      {{kTemporary, "", kOld, "0", "1"}},
  };
  for (const auto& entries : planted) {
    const TemporaryFolder folder;
    write_file(folder / kOld, "planted");
    plant(folder.path(), entries);
    { const AtomicFile file(folder / "b.zt"); }
    const auto left = left_journals(folder.path());
    ASSERT_EQ(left.size(), 1U);
    EXPECT_NE(left[0].why.find("damaged"), std::string::npos) << left[0].why;
    EXPECT_EQ(thrown([&] { recover_folder(folder.path(), true); }).rule, "io/half-published");
    EXPECT_EQ(read_file(folder / kOld), "planted");
  }
  // What is no regular file, and what is no journal at all.
  const TemporaryFolder folder;
  write_file(folder / kJournal, "x");
  fs::create_directory(folder / ".weighbridge-0000000000000001.journal");
  fs::create_symlink("a", folder / ".weighbridge-0000000000000002.journal");
  ASSERT_EQ(::mkfifo((folder / ".weighbridge-0000000000000003.journal").c_str(), 0600), 0);
  { const AtomicFile file(folder / "b.zt"); }
  EXPECT_EQ(left_journals(folder.path()).size(), 4U);
}

TEST(PlantedJournal, IsUndoneIfSomebodyTrustsItAfterItWasShown) {
  const StateHome home;
  const TemporaryFolder folder;
  write_new(folder / "a");
  write_file(folder / kOld, "old");
  plant(folder.path(), {{"a", kTemporary, kOld, inode_of(folder / "a"), inode_of(folder / kOld)}});
  EXPECT_EQ(thrown([&] { recover_folder(folder.path()); }).rule, "io/half-published");
  EXPECT_EQ(read_file(folder / "a"), "new");
  std::vector<RecoveryStep> shown;
  const auto done = recover_folder(folder.path(), true, [&](const std::vector<LeftJournal>& left) {
    shown = left.at(0).steps;
    EXPECT_EQ(read_file(folder / "a"), "new");
  });
  using Way = RecoveryStep::Way;
  EXPECT_EQ(shown, (std::vector<RecoveryStep>{{.way = Way::rename, .from = "a", .to = kTemporary},
                                              {.way = Way::rename, .from = kOld, .to = "a"},
                                              {.way = Way::remove, .from = kJournal}}));
  EXPECT_TRUE(done.at(0).undone);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(read_file(folder / kTemporary), "new") << "a file of somebody's is renamed and not removed";
  EXPECT_EQ(folder.entries(), (std::set<std::string>{"a", kTemporary}));
}

// Whatever the journal says, undoing it only renames: every file is there afterwards, and outside nothing changes.
TEST(PlantedJournal, ThatIsTrustedLosesNoFile) {
  const StateHome home;
  std::mt19937 random(6);
  const auto one_of = [&](const Fields& from) { return from[random() % from.size()]; };
  const Fields names{"a", "b", "Documents/c", "link/d", "absent", "Documents", "link"};
  const Fields new_path{"", kTemporary, ".s.weighbridge-00000000000000bb.tmp/a",
                        "Documents/.c.weighbridge-00000000000000cc.tmp", "link/.d.weighbridge-00000000000000dd.tmp"};
  const Fields aside{"", kOld, ".y.weighbridge-0123456789abcdef.old"};
  int undone = 0;
  for (int round = 0; round < 150; ++round) {
    const TemporaryFolder folder, outside;
    for (const char* sub : {"Documents", ".s.weighbridge-00000000000000bb.tmp"}) fs::create_directory(folder / sub);
    fs::create_directory_symlink(outside.path(), folder / "link");
    write_file(outside / "d", "d");
    const Fields there{"a", "b", "Documents/c", kTemporary, kOld, new_path[2], new_path[3], aside[2]};
    std::multiset<std::string> held;
    for (const std::string& each : there)
      if (random() % 4 != 0) {
        write_file(folder / each, each);
        held.insert(each);
      }
    std::vector<Fields> entries;
    for (unsigned i = 0; i <= random() % 3; ++i) {
      const Fields inodes{"0", "7", inode_of(folder / one_of(there)), inode_of(outside / "d")};
      entries.push_back({one_of(names), one_of(new_path), one_of(aside), one_of(inodes), one_of(inodes)});
    }
    plant(folder.path(), entries, "1");
    try {
      undone += recover_folder(folder.path(), true).at(0).undone ? 1 : 0;
    } catch (const Error& error) {
      EXPECT_EQ(error.finding().rule, "io/half-published") << error.what();
    }
    std::multiset<std::string> now;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      if (entry.is_regular_file() && !is_journal(entry.path().filename().string()))
        now.insert(read_file(entry.path().string()));
    // What is left of old files when no journal is there belongs to a change that is done.
    for (const std::string& old : {aside[1], aside[2]})
      if (!now.contains(old)) held.erase(old);
    EXPECT_EQ(now, held) << "round " << round;
    EXPECT_EQ(outside.entries(), std::set<std::string>{"d"});
  }
  EXPECT_GT(undone, 8);
}

TEST(OwnJournal, BlocksNoOtherNameWhileTheFolderIsLocked) {
  const StateHome home;
  const TemporaryFolder folder;
  kill_half_way(folder.path());
  const Fd stranger = open_folder(folder.path());
  ASSERT_EQ(::flock(stranger.get(), LOCK_EX), 0);
  const Recovered left = recover(folder.path(), std::chrono::milliseconds(10));
  ASSERT_EQ(left.standing.size(), 1U);
  EXPECT_NE(left.standing[0].why.find("locked"), std::string::npos) << left.standing[0].why;
  EXPECT_EQ(thrown([&] { left.require_free(folder.path(), "a"); }).rule, "io/half-published");
  EXPECT_NO_THROW(left.require_free(folder.path(), "b"));
  EXPECT_EQ(read_file(folder / "a"), "new");
}

TEST(OwnJournal, IsUndoneByItselfOnlyWithTheKey) {
  const StateHome home;
  {
    const TemporaryFolder folder;
    kill_half_way(folder.path());
    EXPECT_TRUE(recover(folder.path()).did);
    EXPECT_EQ(read_file(folder / "a"), "old");
    EXPECT_EQ(folder.entries(), std::set<std::string>{"a"});
  }
  const auto stays = [](const TemporaryFolder& folder) {
    const Recovered left = recover(folder.path());
    EXPECT_FALSE(left.did);
    ASSERT_EQ(left.standing.size(), 1U);
    EXPECT_EQ(left.standing[0].names, std::vector<std::string>{"a"});
    EXPECT_EQ(read_file(folder / "a"), "new");
    EXPECT_NO_THROW(left.require_free(folder.path(), "b"));
  };
  {  // the key of another home, and none
    const TemporaryFolder folder;
    kill_half_way(folder.path());
    const TemporaryFolder other;
    StateHome::set(other.path().c_str());
    stays(folder);
    StateHome::set(nullptr);
    EXPECT_EQ(state_folder(true), "");
    stays(folder);
    StateHome::set(home.path().c_str());
    EXPECT_TRUE(recover(folder.path()).did);
    EXPECT_EQ(read_file(folder / "a"), "old");
  }
  {  // one byte changed
    const TemporaryFolder folder;
    kill_half_way(folder.path());
    const std::string journal = journal_in(folder);
    std::string text = read_file(journal);
    text[text.find(kTemporary) + 1] = 'b';
    write_file(journal, text);
    stays(folder);
  }
  {  // moved into another folder, with its files
    const TemporaryFolder folder, other;
    kill_half_way(folder.path());
    for (const std::string& each : folder.entries()) fs::rename(folder / each, other / each);
    stays(other);
  }
  {  // copied: what is kept of a journal does not undo the next change
    const TemporaryFolder folder;
    kill_half_way(folder.path());
    const std::string journal = journal_in(folder);
    fs::copy_file(journal, journal + ".copy");
    fs::rename(journal + ".copy", journal);
    stays(folder);
  }
  {  // that others can write to, and with another name
    const TemporaryFolder folder;
    kill_half_way(folder.path());
    const std::string journal = journal_in(folder);
    ASSERT_EQ(::chmod(journal.c_str(), 0666), 0);
    stays(folder);
    ASSERT_EQ(::chmod(journal.c_str(), 0644), 0);
    fs::create_hard_link(journal, folder / "kept");
    stays(folder);
    fs::remove(folder / "kept");
    EXPECT_TRUE(recover(folder.path()).did);
  }
  {  // a hard link to it that was made in time has nothing in it once it is undone
    const TemporaryFolder folder;
    kill_half_way(folder.path());
    const std::string journal = journal_in(folder);
    const int fd = ::open(journal.c_str(), O_RDONLY);
    EXPECT_TRUE(recover(folder.path()).did);
    struct stat there {};
    ASSERT_EQ(::fstat(fd, &there), 0);
    EXPECT_EQ(there.st_size, 0);
    ::close(fd);
  }
}

// After a power failure, a filesystem may give the inode of a new file to another one.
TEST(OwnJournal, AFileThatOnlyHasTheInodeOfTheNewOneStays) {
  const StateHome home;
  const TemporaryFolder folder;
  kill_half_way(folder.path());
  const int fd = ::open((folder / "a").c_str(), O_WRONLY | O_APPEND);
  ASSERT_EQ(::write(fd, "er", 2), 2);
  ::close(fd);
  const Recovered left = recover(folder.path());
  ASSERT_EQ(left.standing.size(), 1U);
  EXPECT_NE(left.standing[0].why.find("another file has the name 'a'"), std::string::npos) << left.standing[0].why;
  EXPECT_EQ(read_file(folder / "a"), "newer");
}

// The inode alone was compared, then size and time: a file restored by a server, or by hand, may have all three.
TEST(OwnJournal, AFileWithInodeSizeAndTimeOfTheNewOneButOtherBytesStays) {
  const StateHome home;
  const TemporaryFolder folder;
  kill_half_way(folder.path());
  rewrite(folder / "a", "own");
  const Recovered left = recover(folder.path());
  ASSERT_EQ(left.standing.size(), 1U);
  EXPECT_NE(left.standing[0].why.find("another file has the name 'a'"), std::string::npos) << left.standing[0].why;
  EXPECT_EQ(read_file(folder / "a"), "own");
}

TEST(OwnJournal, AFileWithTheInodeOfTheOldOneButOtherBytesIsNotExchangedBack) {
  for (const bool longer : {false, true}) {
    const StateHome home;
    const TemporaryFolder folder;
    const std::string stage = ".folder.weighbridge-00000000000000aa.tmp", changed = longer ? "older" : "OLD";
    fs::create_directory(folder / stage);
    write_file(folder / "a", "old");
    write_file(folder / (stage + "/a"), "new");
    const pid_t child = ::fork();
    if (child == 0) {
      Journal& journal = *new Journal(folder.path(), {{"a", stage + "/a"}});
      ::_exit(journal.move(0) == 0 ? 0 : 1);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ASSERT_EQ(read_file(folder / (stage + "/a")), "old") << "this filesystem exchanges no files";
    rewrite(folder / (stage + "/a"), changed);
    const Recovered left = recover(folder.path());
    ASSERT_EQ(left.standing.size(), 1U);
    EXPECT_NE(left.standing[0].why.find("has other bytes now"), std::string::npos) << left.standing[0].why;
    EXPECT_EQ(read_file(folder / "a"), "new");
    EXPECT_EQ(read_file(folder / (stage + "/a")), changed);
    EXPECT_EQ(left_journals(folder.path()).at(0).why, left.standing[0].why);
  }
}

// As the runs wrote them that recorded no hash.
TEST(OwnJournal, OfAnOlderVersionIsUndoneByWhatItRecords) {
  const StateHome home;
  const TemporaryFolder folder;
  write_new(folder / "a");
  write_file(folder / kOld, "old");
  write_file(folder / kJournal, "");
  std::string rest;
  for (const std::string& field : {std::string("a"), kTemporary, kOld, inode_of(folder / "a"), inode_of(folder / kOld),
                                   std::string("3"), std::string("1700000000000000000"), std::string("end")})
    rest += field + '\0';
  const auto mark =
      mark_of("weighbridge journal\n" + inode_of(folder.path()) + "\n" + inode_of(folder / kJournal) + "\n" + rest,
              Missing::make);
  ASSERT_TRUE(mark);
  write_file(folder / kJournal, std::string("weighbridge journal 2") + '\0' + codecs::to_hex(*mark) + '\0' + rest);
  EXPECT_TRUE(recover(folder.path()).did);
  EXPECT_EQ(read_file(folder / "a"), "old");
}

TEST(OwnJournal, IsNotUndoneByAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  const StateHome home;
  kill_half_way(folder.path());
  const TemporaryFolder other;
  ASSERT_EQ(::chown(other.path().c_str(), 65534, 65534), 0);
  {
    StateHome::set(other.path().c_str());
    const test::Unprivileged nobody;
    ASSERT_NE(state_folder(true), "");
    EXPECT_FALSE(recover(folder.path()).did);
    EXPECT_EQ(read_file(folder / "a"), "new");
    const auto left = left_journals(folder.path());
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].why, "it belongs to another user");
    { const AtomicFile file(folder / "b"); }
    EXPECT_EQ(thrown([&] { const AtomicFile file(folder / "a", {.replace = true}); }).rule, "io/half-published");
    StateHome::set(home.path().c_str());
    EXPECT_EQ(state_folder(true), "") << "a state folder of another user";
  }
  EXPECT_TRUE(recover(folder.path()).did);
  EXPECT_EQ(read_file(folder / "a"), "old");
}

// Without a home, the folder with the files that were exchanged was taken for a temporary of a killed run.
TEST(OwnJournal, WithoutAKeyItsExchangedFilesStay) {
  const StateHome home;
  StateHome::set(nullptr);
  const TemporaryFolder folder;
  const std::string stage = ".folder.weighbridge-00000000000000aa.tmp";
  fs::create_directory(folder / stage);
  write_file(folder / "a", "old");
  write_file(folder / (stage + "/a"), "new");
  const pid_t child = ::fork();
  if (child == 0) {
    Journal& journal = *new Journal(folder.path(), {{"a", stage + "/a"}});
    ::_exit(journal.move(0) == 0 ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const Fd fd = open_folder(folder.path());
  remove_stale(fd.get(), "folder", os::Kind::folder);
  EXPECT_FALSE(recover(folder.path()).did);
  recover_folder(folder.path(), true);
  EXPECT_EQ(read_file(folder / "a"), "old");
  remove_stale(fd.get(), "folder", os::Kind::folder);
  EXPECT_EQ(folder.entries(), std::set<std::string>{"a"});
}

TEST(StateFolder, IsThisUsersAlone) {
  const StateHome home;
  EXPECT_EQ(state_folder(), "") << "it is created when it is needed";
  ASSERT_EQ(state_folder(true), home.path() + "/weighbridge");
  struct stat there {};
  ASSERT_EQ(::stat(state_folder().c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777U, 0700U);
  EXPECT_FALSE(fs::exists(home.key()));
  ASSERT_TRUE(mark_of("text", Missing::make));
  ASSERT_EQ(::stat(home.key().c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777U, 0600U);
  EXPECT_EQ(there.st_size, 32);
  EXPECT_EQ(mark_of("text", Missing::ignore), mark_of("text", Missing::make));
  // A key that others may read, and a folder that they may enter, are not used.
  ASSERT_EQ(::chmod(home.key().c_str(), 0644), 0);
  EXPECT_FALSE(mark_of("text", Missing::make));
  ASSERT_EQ(::chmod(home.key().c_str(), 0600), 0);
  ASSERT_EQ(::chmod(state_folder().c_str(), 0755), 0);
  EXPECT_EQ(state_folder(), "");
  EXPECT_FALSE(mark_of("text", Missing::make));
}

TEST(StateFolder, IsNotMadeInAnotherUsersHome) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const StateHome home;
  ASSERT_EQ(::chown(home.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(state_folder(true), "") << "as with sudo";
  EXPECT_FALSE(fs::exists(home.path() + "/weighbridge"));
}

}  // namespace
}  // namespace weighbridge::io

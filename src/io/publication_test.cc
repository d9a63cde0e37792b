// SPDX-License-Identifier: Apache-2.0
// Files of one folder that are published together, and runs that publish into it at the same time. tests/robustness
// covers kills.
#include "io/publication.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace weighbridge::io {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::TemporaryFolder;
using Names = std::set<std::string>;

// All that another does takes milliseconds: who waits for seconds has waited for a lock that was not to be had.
constexpr auto kPatience = 8s;

void fill(AtomicFile& file, std::string_view text = "all") { file.write_whole(std::as_bytes(std::span(text))); }

TEST(Publication, AFolderInPlaceOfTheMainFileIsFoundBeforeAnythingMoves) {
  const TemporaryFolder root;
  test::write_file(root / "old", "old");
  AtomicFile main(root / "main", {.replace = true}), replaced(root / "old", {.replace = true});
  for (AtomicFile* const file : {&main, &replaced}) fill(*file);
  std::filesystem::create_directory(root / "main");
  Publication publication(main);
  publication.add(replaced);
  EXPECT_EQ(test::thrown([&] { publication.publish(); }).rule, "misuse/output-kind");
  EXPECT_EQ(test::read_file(root / "old"), "old");
  EXPECT_TRUE(std::filesystem::is_directory(root / "main"));
}

TEST(Publication, AFailureLeavesAllAsTheyWere) {
  const TemporaryFolder root;
  for (const char* const name : {"stale", "old"}) test::write_file(root / name, name);
  AtomicFile replaced(root / "old", {.replace = true}), new_file(root / "fresh"), late(root / "late");
  for (AtomicFile* const file : {&replaced, &new_file}) fill(*file);
  {
    Publication publication(late);
    publication.remove(root / "stale");
    for (AtomicFile* const file : {&replaced, &new_file}) publication.add(*file);
    EXPECT_THROW(publication.publish(), std::logic_error);  // never synced
  }
  EXPECT_EQ(test::read_file(root / "stale"), "stale");
  EXPECT_EQ(test::read_file(root / "old"), "old");
  EXPECT_FALSE(std::filesystem::exists(root / "fresh"));
  EXPECT_FALSE(std::filesystem::exists(root / "late"));
}

// It took the name while another run had the old file aside: that run, which replaces files, was told that one exists.
TEST(Publication, OfOneFileWaitsForItsTurn) {
  const TemporaryFolder root;
  test::write_file(root / "a", "old");
  AtomicFile file(root / "a", {.replace = true});
  fill(file, "new");
  std::atomic<bool> done = false;
  std::thread other;
  {
    const FolderLock folder_lock(root.path());
    Journal journal(root.path(), {{"a"}});
    journal.set_aside();
    other = std::thread([&] {
      file.publish();
      done = true;
    });
    std::this_thread::sleep_for(30ms);
    EXPECT_FALSE(done);
  }  // undone
  other.join();
  EXPECT_EQ(test::read_file(root / "a"), "new");
}

// The new file was open to all users.
TEST(Publication, KeepsTheModeOfAFileThatAnotherRunHasAside) {
  const TemporaryFolder root;
  test::write_file(root / "a", "old");
  ::chmod((root / "a").c_str(), 0640);
  std::thread other;
  {
    const FolderLock folder_lock(root.path());
    Journal journal(root.path(), {{"a"}});
    journal.set_aside();
    other = std::thread([&] {
      AtomicFile file(root / "a", {.replace = true});
      fill(file, "new");
      file.publish();
    });
    std::this_thread::sleep_for(30ms);
  }  // undone
  other.join();
  struct stat there {};
  ASSERT_EQ(::stat((root / "a").c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 0777U, 0640U);
}

// Files in a temporary folder are nobody else's: they were waited for ten seconds, as locked by "another process".
TEST(Publication, InATemporaryFolderNeedsNoTurn) {
  const TemporaryFolder root;
  const Staging staging(root.path(), "out", false);
  const auto begin = Clock::now();
  std::thread([&] {
    AtomicFile main(staging.path() + "/a"), beside(staging.path() + "/b");
    for (AtomicFile* const file : {&main, &beside}) fill(*file);
    Publication publication(main);
    publication.add(beside);
    publication.publish();
  }).join();
  EXPECT_LT(Clock::now() - begin, kPatience);
  for (const char* const name : {"/a", "/b"}) EXPECT_EQ(test::read_file(staging.path() + name), "all");
}

TEST(MadeFolders, GoAgainUnlessTheyAreKeptOrHoldSomething) {
  const TemporaryFolder root;
  std::filesystem::create_directory(root / "there");
  {
    MadeFolders folders;
    EXPECT_FALSE(folders.make(root / "there"));
    for (const char* const name : {"a", "a/b", "c"}) EXPECT_TRUE(folders.make(root / name));
    test::write_file(root / "c/mine", "mine");
    EXPECT_EQ(test::thrown([&] { folders.make(root / "none/d"); }).rule, "io/create");
  }
  EXPECT_EQ(root.entries(), (Names{"c", "there"}));
  MadeFolders folders;
  EXPECT_TRUE(folders.make(root / "a"));
  folders.keep();
}

// ---- every pair of ways ----

// One way to publish: it writes files with this text, and returns once they have their names.
using Means = std::function<void(const TemporaryFolder&, const std::string& text)>;

void publish_staged(const TemporaryFolder& root, const std::string& text, Publication::Way way,
                    const std::vector<std::string>& names) {
  const Staging staging(root.path(), "staged", false);
  for (const std::string& name : names) {
    AtomicFile file(staging.path() + "/" + name);
    fill(file, text);
    file.publish();
  }
  Publication publication(root.path());
  for (const std::string& name : names) publication.add({name, staging.name() + "/" + name, true});
  publication.publish(way);
}

const std::vector<std::pair<std::string, Means>> kWays{
    {"a new file",
     [](const TemporaryFolder& root, const std::string& text) {
       AtomicFile file(root / ("new " + text));
       fill(file, text);
       file.publish();
     }},
    {"one file",
     [](const TemporaryFolder& root, const std::string& text) {
       AtomicFile file(root / "a", {.replace = true});
       fill(file, text);
       file.publish();
     }},
    {"several files, and one that goes",
     [](const TemporaryFolder& root, const std::string& text) {
       AtomicFile main(root / "a", {.replace = true}), beside(root / "b", {.replace = true});
       fill(main, text);
       fill(beside, text);
       Publication publication(main);
       publication.add(beside);
       publication.remove(root / "c");
       publication.publish();
     }},
    {"staged files",
     [](const TemporaryFolder& root, const std::string& text) {
       publish_staged(root, text, Publication::Way::together, {"a", "b"});
     }},
    {"staged files one by one",
     [](const TemporaryFolder& root, const std::string& text) {
       publish_staged(root, text, Publication::Way::one_by_one, {"a", "b", "c"});
     }},
    {"a folder",
     [](const TemporaryFolder& root, const std::string& text) {
       Staging staging(root.path(), "folder " + text, true);
       AtomicFile file(staging.path() + "/a");
       fill(file, text);
       file.publish();
       EXPECT_EQ(staging.rename_new("folder " + text), 0);
     }},
};

// Every file has the text of one of the two, or is the old one, and nothing is left behind.
void require_one_of(const TemporaryFolder& root, const std::string& where) {
  for (const std::string& name : root.entries()) {
    EXPECT_EQ(name.find(".weighbridge-"), std::string::npos) << where << ": " << name;
    const std::string text = test::read_file(root / name);
    EXPECT_TRUE(text == "1" || text == "2" || text == "old") << where << ": " << name << ": " << text;
  }
}

constexpr int kTurns = 2;

// Publishes a few times, by turns with the other. Returns what it was told, and how long the longest took.
std::pair<std::string, Clock::duration> take_turns(const Means& way, const TemporaryFolder& root, std::string text) {
  Clock::duration longest{};
  for (int i = 0; i < kTurns; ++i) {
    const auto begin = Clock::now();
    try {
      way(root, text);
    } catch (const std::exception& error) {
      return {error.what(), {}};
    }
    longest = std::max(longest, Clock::now() - begin);
    std::filesystem::remove_all(root / ("folder " + text));
    std::filesystem::remove(root / ("new " + text));
  }
  return {"", longest};
}

void for_each_pair(const std::function<void(const Means& first, const Means& second, const std::string& where)>& test) {
  for (std::size_t i = 0; i < kWays.size(); ++i)
    for (std::size_t k = i; k < kWays.size(); ++k)
      test(kWays[i].second, kWays[k].second, kWays[i].first + ", and " + kWays[k].first);
}

TEST(Publication, TwoThreadsByEveryPairOfWays) {
  for_each_pair([](const Means& first, const Means& second, const std::string& where) {
    const TemporaryFolder root;
    for (const char* const name : {"a", "b", "c"}) test::write_file(root / name, "old");
    std::pair<std::string, Clock::duration> waited[2];
    std::thread thread([&] { waited[0] = take_turns(first, root, "1"); });
    waited[1] = take_turns(second, root, "2");
    thread.join();
    for (const auto& [said, longest] : waited) {
      EXPECT_EQ(said, "") << where;
      EXPECT_LT(longest, kPatience) << where;
    }
    require_one_of(root, where);
  });
}

TEST(Publication, TwoProcessesByEveryPairOfWays) {
  for_each_pair([](const Means& first, const Means& second, const std::string& where) {
    const TemporaryFolder root;
    for (const char* const name : {"a", "b", "c"}) test::write_file(root / name, "old");
    const pid_t child = ::fork();
    if (child == 0) {
      const auto [said, longest] = take_turns(first, root, "1");
      if (!said.empty()) std::fprintf(stderr, "%s\n", said.c_str());
      ::_exit(said.empty() && longest < kPatience ? 0 : 1);
    }
    const auto [said, longest] = take_turns(second, root, "2");
    EXPECT_EQ(said, "") << where;
    EXPECT_LT(longest, kPatience) << where;
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << where;
    require_one_of(root, where);
  });
}

}  // namespace
}  // namespace weighbridge::io

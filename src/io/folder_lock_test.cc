// SPDX-License-Identifier: Apache-2.0
// Taking turns in a folder. tests/robustness covers whole runs.
#include "io/folder_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "weighbridge/error.h"

namespace weighbridge::io {
namespace {

using namespace std::chrono_literals;
using test::TemporaryFolder;

TEST(FolderLock, IsHadByOneThreadAtATime) {
  const TemporaryFolder folder;
  std::atomic<bool> second = false;
  std::thread other;
  {
    const FolderLock first(folder.path());
    other = std::thread([&] {
      const FolderLock lock(folder.path());
      second = true;
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(second);
  }
  other.join();
  EXPECT_TRUE(second);
}

TEST(FolderLock, IsTakenAgainByTheThreadThatHasIt) {
  const TemporaryFolder folder;
  const FolderLock outer(folder.path());
  { const FolderLock inner(folder.path()); }
  std::atomic<bool> cancelled = false;
  std::thread([&] {
    try {
      const FolderLock lock(folder.path(), [] { return false; });
    } catch (const Cancelled&) {
      cancelled = true;
    }
  }).join();
  EXPECT_TRUE(cancelled) << "the inner one has given it away";
}

TEST(FolderLock, OfSomebodyElseIsWaitedForUntilPatienceEnds) {
  const TemporaryFolder folder;
  const FolderLock first(folder.path());
  Finding found;
  std::thread([&] { found = test::thrown([&] { const FolderLock second(folder.path(), {}, 20ms); }); }).join();
  EXPECT_EQ(found.rule, "io/lock");
  EXPECT_NE(found.message.find("0 seconds (flock)"), std::string::npos) << found.message;
}

// A stranger's lock held up every run for a minute, without a word of why.
TEST(FolderLock, OfAStrangerIsNotWaitedForAMinute) { EXPECT_LE(FolderLock::kPatience, 10s); }

TEST(FolderLock, NeedsAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(test::thrown([&] { const FolderLock lock(folder / "none"); }).rule, "io/open");
}

}  // namespace
}  // namespace weighbridge::io

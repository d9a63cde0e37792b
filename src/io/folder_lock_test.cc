// SPDX-License-Identifier: Apache-2.0
// Taking turns in a folder. tests/robustness covers whole runs.
#include "io/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

#include "io/abandon.h"
#include "io/temporary.h"
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

static_assert(!std::is_move_constructible_v<FolderLock> && !std::is_move_assignable_v<FolderLock>);

// It stayed on the list of the thread that had taken it, which then "held" whatever folder got the inode.
TEST(FolderLock, ThatAnotherThreadDestroysIsHeldByNobody) {
  const TemporaryFolder folder;
  auto lock = std::make_unique<FolderLock>(folder.path());
  std::thread([&] { lock.reset(); }).join();
  std::atomic<bool> waited = false;
  std::thread([&] {
    const FolderLock other(folder.path());  // nobody is waited for
    std::thread([&] {
      try {
        const FolderLock third(folder.path(), [] { return false; });
      } catch (const Cancelled&) {
        waited = true;
      }
    }).join();
  }).join();
  EXPECT_TRUE(waited);
  const FolderLock again(folder.path());
  const Fd stranger = open_folder(folder.path());
  EXPECT_NE(::flock(stranger.get(), LOCK_EX | LOCK_NB), 0) << "it is locked again, not taken for held";
}

// A new thread may get the id of one that ended.
TEST(FolderLock, OfAThreadThatHasEndedIsHeldByNoLaterOne) {
  const TemporaryFolder folder;
  std::unique_ptr<FolderLock> lock;
  std::thread([&] { lock = std::make_unique<FolderLock>(folder.path()); }).join();
  for (int i = 0; i < 20; ++i) {
    bool waited = false;
    std::thread([&] {
      try {
        const FolderLock other(folder.path(), [] { return false; });
      } catch (const Cancelled&) {
        waited = true;
      }
    }).join();
    EXPECT_TRUE(waited);
  }
}

TEST(FolderLock, TakenTwiceIsFreeOnceBothObjectsAreGoneInAnyOrder) {
  const TemporaryFolder folder;
  const Fd stranger = open_folder(folder.path());
  const auto is_free = [&] {
    const bool free = ::flock(stranger.get(), LOCK_EX | LOCK_NB) == 0;
    ::flock(stranger.get(), LOCK_UN);
    return free;
  };
  auto outer = std::make_unique<FolderLock>(folder.path());
  auto inner = std::make_unique<FolderLock>(folder.path());
  outer.reset();
  EXPECT_FALSE(is_free());
  std::thread([&] { inner.reset(); }).join();
  EXPECT_TRUE(is_free());
}

TEST(FolderLock, OfSomebodyElseIsWaitedForUntilPatienceEnds) {
  const TemporaryFolder folder;
  const Fd stranger = open_folder(folder.path());
  ASSERT_EQ(::flock(stranger.get(), LOCK_EX), 0);
  const Finding found = test::thrown([&] { const FolderLock lock(folder.path(), {}, 20ms); });
  EXPECT_EQ(found.rule, "io/lock");
  EXPECT_NE(found.message.find("0 seconds (flock)"), std::string::npos) << found.message;
}

// It was told after ten seconds that "another process" had the folder.
TEST(FolderLock, OfAnotherThreadIsWaitedForAsLongAsItsWorkTakes) {
  const TemporaryFolder folder;
  std::atomic<bool> done = false;
  std::thread other;
  {
    const FolderLock first(folder.path());
    other = std::thread([&] {
      const FolderLock second(folder.path(), {}, 1ms);
      done = true;
    });
    std::this_thread::sleep_for(60ms);
    EXPECT_FALSE(done);
  }
  other.join();
  EXPECT_TRUE(done);
}

TEST(FolderLock, TwoThreadsThatWantEachOthersFoldersAreToldTheTruth) {
  const TemporaryFolder folder, another;
  std::atomic<int> holding = 0;
  std::string said[2];
  const auto run = [&](int i) {
    const FolderLock first((i == 0 ? folder : another).path());
    ++holding;
    while (holding < 2) std::this_thread::sleep_for(1ms);
    try {
      const FolderLock second((i == 0 ? another : folder).path(), {}, i == 0 ? 20ms : 5s);
    } catch (const Error& error) {
      said[i] = error.what();
    }
  };
  std::thread one([&] { run(0); }), two([&] { run(1); });
  one.join();
  two.join();
  EXPECT_NE(said[0].find("another thread"), std::string::npos) << said[0];
  EXPECT_EQ(said[1], "");
}

// Of the threads of a process that forks, the child has only one: it must not wait for the others.
TEST(FolderLock, AForkedProcessWaitsForNoThreadOfItsParent) {
  const TemporaryFolder folder, another;
  std::atomic<int> step = 0;
  std::thread other([&] {
    const FolderLock lock(folder.path());
    step = 1;
    while (step < 2) std::this_thread::sleep_for(1ms);
  });
  while (step < 1) std::this_thread::sleep_for(1ms);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = test::thrown([&] { const FolderLock lock(folder.path(), {}, 10ms); }).rule == "io/lock";
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  step = 2;
  other.join();
}

TEST(FolderLock, IsNotWaitedForWhileNamesChange) {
  const TemporaryFolder folder;
  const NamesChange changing;
  EXPECT_THROW(const FolderLock lock(folder.path()), std::logic_error);
}

// A stranger's lock held up every run for a minute, without a word of why.
TEST(FolderLock, OfAStrangerIsWaitedForTenSeconds) { EXPECT_EQ(FolderLock::kPatience, 10s); }

TEST(FolderLock, NeedsAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(test::thrown([&] { const FolderLock lock(folder / "none"); }).rule, "io/open");
}

}  // namespace
}  // namespace weighbridge::io

// SPDX-License-Identifier: Apache-2.0
// A team runs each job once on each thread, and its barriers hold whether threads spin or sleep.
#include "runtime/kernels/team.h"

#include <gtest/gtest.h>
#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "support/sanitized.h"

namespace weighbridge::kernels {
namespace {

TEST(Team, RunsEachRankOnce) {
  for (const unsigned threads : {1U, 2U, 3U, 5U}) {
    Team team(threads);
    ASSERT_EQ(team.size(), threads);
    for (int job = 0; job < 50; ++job) {
      std::vector<int> runs(threads);
      team.run([&](const Crew& crew) { ++runs[crew.rank]; });
      EXPECT_EQ(runs, std::vector<int>(threads, 1));
    }
  }
}

TEST(Team, BarriersSeparateSteps) {
  Team team(4);
  std::vector<int> values(4);
  bool right = true;
  team.run([&](const Crew& crew) {
    for (int step = 1; step <= 200; ++step) {
      values[crew.rank] = step;
      crew.sync();
      const int sum = std::accumulate(values.begin(), values.end(), 0);
      crew.sync();
      if (sum != 4 * step) right = false;
    }
  });
  EXPECT_TRUE(right);
}

TEST(Team, ComputesEachItemOnceWhoeverIsLate) {
  for (const unsigned threads : {1U, 2U, 3U, 5U}) {
    Team team(threads);
    constexpr std::size_t kJobs = 300;
    std::vector<std::vector<std::atomic<int>>> done;
    for (std::size_t job = 0; job < kJobs; ++job) done.emplace_back(job * 7 % 23);
    for (int round = 1; round <= 3; ++round) {
      team.run([&](const Crew& crew) {
        for (std::size_t job = 0; job < kJobs; ++job) {
          if ((job + crew.rank) % 40 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
          crew.each(done[job].size(), [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) done[job][i].fetch_add(1, std::memory_order_relaxed);
          });
          if (job % 3 == 2) crew.sync();  // up to three jobs are under way at once
        }
      });
      for (const auto& job : done)
        for (const auto& times : job) ASSERT_EQ(times.load(), round);
    }
  }
}

TEST(Team, TakesOverFromAMemberThatHasNotBegun) {
  Team team(2);
  std::atomic<std::size_t> items[2] = {};
  team.run([&](const Crew& crew) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (crew.rank == 1 && items[0] < 100 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    crew.each(100, [&](std::size_t begin, std::size_t end) { items[crew.rank] += end - begin; });
  });
  EXPECT_EQ(items[0], 100U);
  EXPECT_EQ(items[1], 0U);
}

TEST(Team, WakesFromSleep) {
  Team team(3);
  int total = 0;
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than threads spin
    team.run([&](const Crew& crew) {
      if (crew.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      crew.sync();
      if (crew.rank == 2) ++total;
    });
  }
  EXPECT_EQ(total, 3);
}

#ifdef __linux__
TEST(Team, WorksInAForkedProcess) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer cannot start threads in a forked process";
  Team team(3);
  const auto runs = [&team] {
    std::vector<int> out(3);
    team.run([&](const Crew& crew) {
      crew.sync();
      ++out[crew.rank];
    });
    return out == std::vector<int>(3, 1);
  };
  ASSERT_TRUE(runs());
  const pid_t child = ::fork();
  if (child == 0) {
    bool right = runs() && runs();
    { const Team unused(2); }
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(runs());
}
#endif

TEST(Team, SharesCoverEverythingOnce) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{100}}) {
    std::size_t next = 0;
    for (unsigned rank = 0; rank < 3; ++rank) {
      const auto [begin, end] = Crew{.rank = rank, .size = 3}.share(count);
      EXPECT_EQ(begin, next);
      next = end;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace weighbridge::kernels

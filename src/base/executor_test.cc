// SPDX-License-Identifier: Apache-2.0
// Executors: each index runs once; exceptions, nesting, several callers, short jobs.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weighbridge/context.h"

namespace weighbridge {
namespace {

class Executors : public testing::TestWithParam<unsigned> {
 protected:
  std::shared_ptr<Executor> executor = thread_executor(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Threads, Executors, testing::Values(1U, 2U, 3U, 8U));

TEST_P(Executors, CallsEachIndexOnce) {
  EXPECT_EQ(executor->concurrency(), GetParam());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}}) {
    std::vector<std::atomic<int>> calls(count);
    executor->for_each(count, [&](std::uint64_t i) { ++calls[i]; });
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(calls[i], 1) << i << " of " << count;
  }
}

TEST_P(Executors, RunsOnNoMoreThreadsThanPromised) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<unsigned> now{0}, maximum{0};
  executor->for_each(200, [&](std::uint64_t) {
    const unsigned inside = ++now;
    for (unsigned seen = maximum; seen < inside && !maximum.compare_exchange_weak(seen, inside);) {}
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    --now;
  });
  EXPECT_LE(maximum, GetParam());
  EXPECT_LE(threads.size(), GetParam());
}

TEST_P(Executors, RethrowsTheLowestIndexThatThrew) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<std::uint64_t> highest{0};
    try {
      executor->for_each(1'000'000, [&](std::uint64_t i) {
        for (std::uint64_t seen = highest; seen < i && !highest.compare_exchange_weak(seen, i);) {}
        if (i >= 20) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "20");
    }
    EXPECT_LT(highest, 1'000'000U - 1);  // the rest never started
  }
}

TEST_P(Executors, NestedCallsFinish) {
  std::atomic<int> calls{0};
  executor->for_each(16, [&](std::uint64_t) {
    executor->for_each(16, [&](std::uint64_t) { executor->for_each(4, [&](std::uint64_t) { ++calls; }); });
  });
  EXPECT_EQ(calls, 16 * 16 * 4);
}

TEST_P(Executors, NestedExceptionsComeThrough) {
  EXPECT_THROW(executor->for_each(8,
                                  [&](std::uint64_t) {
                                    executor->for_each(8, [](std::uint64_t i) {
                                      if (i == 3) throw std::out_of_range("inner");
                                    });
                                  }),
               std::out_of_range);
  std::atomic<int> calls{0};
  executor->for_each(100, [&](std::uint64_t) { ++calls; });
  EXPECT_EQ(calls, 100);
}

TEST_P(Executors, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<std::uint64_t> sum{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) executor->for_each(32, [&](std::uint64_t i) { sum += i; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4U * 100U * (31U * 32U / 2));
}

TEST_P(Executors, EachOfSeveralCallersGetsItsOwnException) {
  constexpr int kCallers = 6, kRounds = 300;
  std::vector<std::thread> callers;
  std::atomic<int> own{0}, foreign{0};
  for (int c = 0; c < kCallers; ++c)
    callers.emplace_back([&, c] {
      const std::string mine = std::to_string(c);
      for (int round = 0; round < kRounds; ++round) {
        try {
          executor->for_each(64, [&](std::uint64_t i) {
            if (i >= 2) throw std::runtime_error(mine);
          });
        } catch (const std::runtime_error& error) {
          ++(error.what() == mine ? own : foreign);
        }
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(own, kCallers * kRounds);
  EXPECT_EQ(foreign, 0);
}

TEST_P(Executors, TwoExecutorsMayNestInEachOther) {
  const auto other = thread_executor(2);
  std::atomic<int> calls{0};
  executor->for_each(8, [&](std::uint64_t) {
    other->for_each(8, [&](std::uint64_t) { executor->for_each(4, [&](std::uint64_t) { ++calls; }); });
  });
  EXPECT_EQ(calls, 8 * 8 * 4);
}

TEST_P(Executors, WritesOfBodiesAreSeenByTheCaller) {
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> out(5);
    executor->for_each(out.size(), [&](std::uint64_t i) { out[i] = i + 1; });
    ASSERT_EQ(out, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  }
}

TEST(ThreadExecutor, BodiesTrulyRunSideBySide) {
  const auto executor = thread_executor(3);
  std::atomic<int> arrived{0};
  // Each body waits for the others: on fewer than three threads this would never end.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  executor->for_each(3, [&](std::uint64_t) {
    ++arrived;
    while (arrived < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  EXPECT_LT(std::chrono::steady_clock::now(), give_up);
}

#if defined(__GLIBC__) && defined(__x86_64__)
// While it lives, no thread can start: its stack would not fit the address space.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t endless;
    EXPECT_EQ(::pthread_attr_init(&endless), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&endless, std::size_t{1} << 47), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&endless), 0);
    EXPECT_EQ(::pthread_attr_destroy(&endless), 0);
  }
  ~NoMoreThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    EXPECT_EQ(::pthread_attr_destroy(&before_), 0);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(ThreadExecutor, ThreadsThatTheSystemRefusesAreDoneWithout) {
  std::atomic<int> calls{0};
  {
    const NoMoreThreads none;
    const auto alone = thread_executor(4);
    EXPECT_EQ(alone->concurrency(), 1U);  // the caller's thread is enough
    alone->for_each(100, [&](std::uint64_t) { ++calls; });
  }
  EXPECT_EQ(calls, 100);
  EXPECT_EQ(thread_executor(4)->concurrency(), 4U);
}
#endif

TEST(ThreadExecutor, ZeroMeansTheProcessorsOfThisProcess) {
  EXPECT_GE(thread_executor(0)->concurrency(), 1U);
  EXPECT_EQ(thread_executor(0)->concurrency(), thread_executor()->concurrency());
}

TEST(InlineExecutor, GoesInOrderInTheCallersThread) {
  const auto executor = inline_executor();
  EXPECT_EQ(executor->concurrency(), 1U);
  std::vector<std::uint64_t> order;
  executor->for_each(5, [&](std::uint64_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_THROW(executor->for_each(5,
                                  [&](std::uint64_t i) {
                                    order.push_back(i);
                                    throw std::runtime_error("stop");
                                  }),
               std::runtime_error);
  EXPECT_EQ(order.size(), 6U);
}

}  // namespace
}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Threads that work together on one small job, many times a second. They spin for some microseconds before they sleep,
// because waking a sleeping thread costs ten times what a small product does. Owns threads and barriers; leaves longer
// jobs to base's executors.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace weighbridge::kernels {

// All members must arrive before any continues. Works however long a member is delayed.
class Barrier {
 public:
  explicit Barrier(unsigned size) noexcept : size_(size) {}
  void arrive_and_wait() noexcept;

 private:
  const unsigned size_;
  alignas(64) std::atomic<unsigned> arrived_{0};
  alignas(64) std::atomic<unsigned> round_{0};
};

// A member's share of `count` items, as [first, second).
inline std::pair<std::size_t, std::size_t> share_of(std::size_t count, unsigned rank, unsigned size) noexcept {
  return {count * rank / size, count * (rank + 1) / size};
}

// What each member has left of the items that a crew computes. A member starts at the front of its share. Once done, it
// takes items from the back of the others', because another program may be holding up their processors.
class Claims {
 public:
  explicit Claims(unsigned threads) : members_(threads) {}
  static constexpr std::size_t kMaxItems = (std::size_t{1} << 24) - 1;  // items of a job

  // Begins the next job. All members call it for the same jobs in the same order.
  void begin(unsigned rank) noexcept { ++members_[rank].job; }
  // Items of the `count` that are this member's from now on, as [first, second); none if none are left. `size` is that
  // of the crew.
  std::pair<std::size_t, std::size_t> next(unsigned rank, unsigned size, std::size_t count) noexcept;

 private:
  struct alignas(64) Member {
    std::atomic<std::uint64_t> left{0};  // the job it is of, first item, end
    std::uint16_t job = 0;               // only for the member's own thread
  };
  std::vector<Member> members_;
};

// One thread's rank among those that compute together. A crew of one needs no barrier.
struct Crew {
  unsigned rank = 0, size = 1;
  Barrier* barrier = nullptr;
  Claims* claims = nullptr;

  void sync() const noexcept {
    if (size > 1) barrier->arrive_and_wait();
  }
  std::pair<std::size_t, std::size_t> share(std::size_t count) const noexcept { return share_of(count, rank, size); }
  // Calls call(first, end) for this member's share, unless it is empty.
  template <class Call> void own(std::size_t count, Call call) const {
    if (const auto [first, end] = share(count); first < end) call(first, end);
  }
  // Calls call(first, end) for items until all `count` are computed or being computed. All members call this, in the
  // same order; which of them gets an item depends on how fast they are.
  template <class Call> void each(std::size_t count, Call call) const {
    if (size == 1 || count > Claims::kMaxItems) return own(count, call);
    claims->begin(rank);
    for (;;) {
      const auto [first, end] = claims->next(rank, size, count);
      if (first == end) return;
      call(first, end);
    }
  }
};

class Team {
 public:
  // `threads` includes the caller and is at least 1. The team is smaller if the system cannot create that many. A
  // process that was forked has a copy of the team but none of its threads: the first job there starts them anew.
  explicit Team(unsigned threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned size() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }
  // Calls body(crew) once on each thread, including the caller's with rank 0, and returns when all are done. Allows one
  // call at a time. body must not throw.
  void run(const std::function<void(const Crew&)>& body) noexcept;

 private:
  void start(unsigned threads) noexcept;
  void forget_threads_of_parent() noexcept;
  void work(unsigned rank) noexcept;

  unsigned process_ = 0;            // in which the threads are: how many forks were before it
  std::optional<Barrier> barrier_;  // for the threads that could be created
  std::optional<Claims> claims_;
  const std::function<void(const Crew&)>* body_ = nullptr;
  alignas(64) std::atomic<unsigned> job_{0};  // counts the jobs started
  alignas(64) std::atomic<unsigned> busy_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weighbridge::kernels

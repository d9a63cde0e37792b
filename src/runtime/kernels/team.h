// SPDX-License-Identifier: Apache-2.0
// A few threads that work on one small job together, many times a second. They wait by spinning for some microseconds
// and then sleep: waking a sleeping thread costs ten times what a small product does. Owns threads and barriers; what
// is worth sharing out is for base's executors where it takes longer.
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

// All its members must arrive before any goes on. Misses no arrival however long one of them is away.
class Barrier {
 public:
  explicit Barrier(unsigned size) noexcept : size_(size) {}
  void arrive_and_wait() noexcept;

 private:
  const unsigned size_;
  alignas(64) std::atomic<unsigned> arrived_{0};
  alignas(64) std::atomic<unsigned> round_{0};
};

// One thread's place among those that compute something together; alone it needs no barrier.
struct Crew {
  unsigned rank = 0, size = 1;
  Barrier* barrier = nullptr;

  void sync() const noexcept {
    if (size > 1) barrier->arrive_and_wait();
  }
  // This member's share of `count` things, as [first, second).
  std::pair<std::size_t, std::size_t> share(std::size_t count) const noexcept {
    return {count * rank / size, count * (rank + 1) / size};
  }
};

class Team {
 public:
  // The caller's included; at least 1. Fewer where the system gives no more.
  explicit Team(unsigned threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  unsigned size() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }
  // Calls body(crew) once on each thread, the caller's among them with rank 0, and returns when all are done. One call
  // at a time. body must not throw.
  void run(const std::function<void(const Crew&)>& body) noexcept;

 private:
  void work(unsigned rank) noexcept;

  std::optional<Barrier> barrier_;  // of those that there are
  const std::function<void(const Crew&)>* body_ = nullptr;
  alignas(64) std::atomic<unsigned> job_{0};  // counts the jobs given out
  alignas(64) std::atomic<unsigned> busy_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weighbridge::kernels

// SPDX-License-Identifier: Apache-2.0
// The threads of a team, how they wait for each other, and how they divide work.
#include "runtime/kernels/team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <tuple>

#include "base/os.h"

namespace weighbridge::kernels {
namespace {

inline void pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

using std::chrono::microseconds, std::chrono::steady_clock;

// Within a job the others are always close; between jobs the caller may never return.
constexpr microseconds kWithinJob{500}, kBetweenJobs{100};
// How long a waiting thread keeps its processor. After that the thread it waits for may not be running and may need
// this processor.
constexpr microseconds kAlone{15};

// Returns once `word` differs from `old`: spins, then yields in between, then sleeps until notified.
void wait_while(const std::atomic<unsigned>& word, unsigned old, microseconds awake) noexcept {
  constexpr int kLooks = 32;  // between two looks at the clock
  const auto begin = steady_clock::now();
  for (steady_clock::duration waited{}; waited < awake; waited = steady_clock::now() - begin) {
    for (int i = 0; i < kLooks; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      pause();
    }
    if (waited > kAlone) std::this_thread::yield();
  }
  while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
}

// How many forks were between the first process and this one.
std::atomic<unsigned> forks{0};
void count_forks() noexcept {
  static const bool once =
      (base::at_fork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); }), true);
  static_cast<void>(once);
}

}  // namespace

void Barrier::arrive_and_wait() noexcept {
  const unsigned round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    round_.notify_all();
    return;
  }
  wait_while(round_, round, kWithinJob);
}

// By the time a member leaves a job, all words are of that job and empty, or of a later one; those of the next job are
// begun by whoever comes first. So a word that is not of this job is of the one before, and empty, or of a later one.
// Barriers keep members far less than 2^16 jobs apart.
std::pair<std::size_t, std::size_t> Claims::next(unsigned rank, unsigned size, std::size_t count) noexcept {
  const auto word = [](std::uint16_t job, std::uint64_t first, std::uint64_t end) {
    return std::uint64_t{job} << 48 | first << 24 | end;
  };
  const std::uint16_t job = members_[rank].job;
  for (unsigned i = 0; i < size; ++i) {
    const unsigned whose = (rank + i) % size;
    std::atomic<std::uint64_t>& left = members_[whose].left;
    for (std::uint64_t seen = left.load(std::memory_order_acquire);;) {
      const auto of = static_cast<std::uint16_t>(seen >> 48);
      std::uint64_t first = seen >> 24 & kMaxItems, end = seen & kMaxItems;
      if (of == static_cast<std::uint16_t>(job - 1)) {
        std::tie(first, end) = share_of(count, whose, size);
      } else if (of != job) {
        break;
      }
      // Some of its own at once, as long as many are left: weights are prefetched best in order.
      const std::uint64_t some = i == 0 ? (end - first + 3) / 4 : std::min<std::uint64_t>(1, end - first);
      const std::uint64_t rest = i == 0 ? word(job, first + some, end) : word(job, first, end - some);
      if (rest == seen) break;
      if (!left.compare_exchange_weak(seen, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (some == 0) break;
      return i == 0 ? std::pair<std::size_t, std::size_t>{first, first + some}
                    : std::pair<std::size_t, std::size_t>{end - some, end};
    }
  }
  return {0, 0};
}

Team::Team(unsigned threads) {
  count_forks();
  start(threads);
}

void Team::start(unsigned threads) noexcept {
  process_ = forks.load(std::memory_order_relaxed);
  try {
    claims_.emplace(threads);
    if (threads > 1) threads_.reserve(threads - 1);
    for (unsigned rank = 1; rank < threads; ++rank) threads_.emplace_back([this, rank] { work(rank); });
  } catch (const std::exception&) {
    // Continue with the threads that exist.
  }
  barrier_.emplace(size());
}

// Nothing may be done with handles of threads that only the parent has, so they are not destroyed.
void Team::forget_threads_of_parent() noexcept {
  if (process_ == forks.load(std::memory_order_relaxed)) return;
  static_cast<void>(new (std::nothrow) std::vector<std::thread>(std::move(threads_)));
  threads_.clear();
}

Team::~Team() {
  forget_threads_of_parent();
  stopping_.store(true);
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(const std::function<void(const Crew&)>& body) noexcept {
  if (process_ != forks.load(std::memory_order_relaxed)) {
    const unsigned threads = size();
    forget_threads_of_parent();
    job_.store(0);
    start(threads);
  }
  if (threads_.empty()) return body(Crew{});
  body_ = &body;
  busy_.store(size() - 1, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  body(Crew{.rank = 0, .size = size(), .barrier = &*barrier_, .claims = &*claims_});
  for (unsigned left = busy_.load(std::memory_order_acquire); left != 0; left = busy_.load(std::memory_order_acquire))
    wait_while(busy_, left, kWithinJob);
}

void Team::work(unsigned rank) noexcept {
  for (unsigned seen = 0;; ++seen) {
    wait_while(job_, seen, kBetweenJobs);
    if (stopping_.load()) return;
    (*body_)(Crew{.rank = rank, .size = size(), .barrier = &*barrier_, .claims = &*claims_});
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
  }
}

}  // namespace weighbridge::kernels

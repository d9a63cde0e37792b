// SPDX-License-Identifier: Apache-2.0
// The two executors: inline, and a thread pool. Owns every thread that the library starts.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os.h"
#include "weighbridge/context.h"

namespace weighbridge {
namespace {

using Body = std::function<void(std::uint64_t)>;

class InlineExecutor final : public Executor {
 public:
  unsigned concurrency() const noexcept override { return 1; }
  void for_each(std::uint64_t count, const Body& body) override {
    for (std::uint64_t i = 0; i < count; ++i) body(i);
  }
};

// One call of for_each. It lives on the caller's stack: before the caller returns, it removes the job from the queue
// and waits until no worker uses it. `next` advances by compare-exchange, so that it never exceeds `count`, even at
// 2^64 - 1.
struct Job {
  Job(std::uint64_t count_, const Body& body_) : count(count_), body(body_) {}

  const std::uint64_t count;
  const Body& body;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  unsigned workers = 0;  // pool threads inside run(), under the pool's mutex
  std::mutex error_mutex;
  std::uint64_t error_index = 0;
  std::exception_ptr error;

  bool exhausted() const noexcept {
    return failed.load(std::memory_order_relaxed) || next.load(std::memory_order_relaxed) >= count;
  }

  void run() noexcept {
    for (;;) {
      if (failed.load(std::memory_order_relaxed)) return;
      std::uint64_t index = next.load(std::memory_order_relaxed);
      do {
        if (index >= count) return;
      } while (!next.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
      try {
        body(index);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error || index < error_index) {
          error = std::current_exception();
          error_index = index;
        }
        failed.store(true, std::memory_order_relaxed);
      }
    }
  }
};

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(unsigned threads) {
    threads_.reserve(threads - 1);
    try {
      for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      // The system starts no more threads: continue with those that exist.
    }
  }
  ~ThreadExecutor() override { stop(); }
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  unsigned concurrency() const noexcept override { return static_cast<unsigned>(threads_.size()) + 1; }

  void for_each(std::uint64_t count, const Body& body) override {
    // A nested call runs in its own thread: the other threads are busy with the outer call, and waiting for them could
    // deadlock.
    if (count <= 1 || current_ == this) {
      for (std::uint64_t i = 0; i < count; ++i) body(i);
      return;
    }
    Job job(count, body);
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(&job);
    }
    if (count - 1 >= threads_.size()) {
      wake_.notify_all();
    } else {
      for (std::uint64_t i = 1; i < count; ++i) wake_.notify_one();
    }
    {
      const Inside inside(this);
      job.run();
    }
    {
      std::unique_lock lock(mutex_);
      // A worker may have removed it already, when no index was left.
      if (const auto at = std::find(jobs_.begin(), jobs_.end(), &job); at != jobs_.end()) jobs_.erase(at);
      done_.wait(lock, [&job] { return job.workers == 0; });
    }
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  // Marks the thread as inside a body of this executor, and restores the previous mark (of another executor).
  struct Inside {
    explicit Inside(const ThreadExecutor* executor) : before(current_) { current_ = executor; }
    ~Inside() { current_ = before; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    const ThreadExecutor* before;
  };

  void work() {
    const Inside inside(this);
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      Job* job = jobs_.front();
      if (job->exhausted()) {
        jobs_.pop_front();
        continue;
      }
      ++job->workers;
      lock.unlock();
      job->run();
      lock.lock();
      if (const auto at = std::find(jobs_.begin(), jobs_.end(), job); at != jobs_.end()) jobs_.erase(at);
      // Under the lock, because the job is destroyed as soon as its caller sees 0.
      if (--job->workers == 0) done_.notify_all();
    }
  }

  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  static thread_local const ThreadExecutor* current_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Job*> jobs_;  // those with indices left, oldest first
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

thread_local const ThreadExecutor* ThreadExecutor::current_ = nullptr;

}  // namespace

std::shared_ptr<Executor> inline_executor() {
  static const std::shared_ptr<Executor> instance = std::make_shared<InlineExecutor>();
  return instance;
}

std::shared_ptr<Executor> thread_executor(unsigned threads) {
  if (threads == 0) threads = base::usable_processors();
  if (threads == 1 || !base::has_threads()) return inline_executor();
  return std::make_shared<ThreadExecutor>(threads);
}

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that a job has done and calls the caller's hook, one call at a time. Throws Cancelled if the hook
// returns false.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"

namespace weighbridge::core {

// Whether to continue, by the caller's hook if there is one.
inline bool goes_on(const Context& context, std::uint64_t done, std::uint64_t total) {
  return !context.progress || context.progress(done, total);
}

// Calls the hook, for work that does not know the job's size. Throws Cancelled if the hook says so.
inline void check_cancelled(const Context& context) {
  if (!goes_on(context, 0, 0)) throw Cancelled{};
}

// Times the steps of a job, one after another. Steps of one name are added up.
class StepTimer {
 public:
  explicit StepTimer(std::vector<TimedStep>& out) : out_(out) {}
  // Of the time since the last step.
  void ran(std::string_view what) {
    const auto end = Clock::now();
    const double seconds = std::chrono::duration<double>(end - std::exchange(begin_, end)).count();
    const auto known = std::ranges::find(out_, what, &TimedStep::what);
    if (known == out_.end())
      out_.push_back({what, seconds});
    else
      known->seconds += seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<TimedStep>& out_;
  Clock::time_point begin_ = Clock::now();
};

class Progress {
 public:
  Progress(const Context& context, std::uint64_t total) : context_(context), total_(total) {}

  // Safe from several threads. Throws Cancelled after the hook has returned false. Does not wait if another thread is
  // in the hook. Leaves the last call of the hook to finish() or finish_pass(): whether it may stop is their matter.
  void add(std::uint64_t bytes) {
    const std::uint64_t done = done_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (!context_.progress) return;
    if (stopped_.load(std::memory_order_relaxed)) throw Cancelled{};
    if (total_ > 0 && done >= total_) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) report();
  }
  // A context for work inside the job: its limits, no threads, and a hook that forwards here without counting. Must not
  // outlive this.
  Context inner() {
    Context out;
    out.limits = context_.limits;
    if (context_.progress)
      out.progress = [this](std::uint64_t, std::uint64_t) {
        add(0);
        return true;
      };
    return out;
  }
  // Reports that the job is complete. Never stops it: what is done is returned, whatever the hook says.
  void finish() {
    if (!context_.progress) return;
    const std::lock_guard lock(mutex_);
    done_.store(total_, std::memory_order_relaxed);
    static_cast<void>(context_.progress(total_, total_));
  }
  // The same for a job that goes on: with another pass, or by publishing what it has written. Throws Cancelled.
  void finish_pass() {
    if (!context_.progress) return;
    const std::lock_guard lock(mutex_);
    done_.store(total_, std::memory_order_relaxed);
    report();
  }

 private:
  void report() {
    if (context_.progress(done_.load(std::memory_order_relaxed), total_)) return;
    stopped_.store(true, std::memory_order_relaxed);
    throw Cancelled{};
  }

  const Context& context_;
  const std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
};

// The executor of a context; the inline one by default.
inline Executor& executor_of(const Context& context) {
  static const std::shared_ptr<Executor> in_line = inline_executor();
  return context.executor ? *context.executor : *in_line;
}

}  // namespace weighbridge::core

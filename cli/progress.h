// SPDX-License-Identifier: Apache-2.0
// A bar with rate and time left on standard error, where that is a terminal and the job is long; and the way in which
// Ctrl-C reaches a job.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace weighbridge::cli {

class Progress {
 public:
  // `label`: the verb. A quiet one draws nothing and still stops the job on an interrupt.
  Progress(std::string_view label, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // For Context::progress; refers to this object. Counts bytes.
  std::function<bool(std::uint64_t, std::uint64_t)> hook();
  // The same, counting `unit`s ("texts").
  std::function<bool(std::uint64_t, std::uint64_t)> hook(std::string_view unit);
  // What the bar is about from now on besides the verb: a file, where there are several, or a part of the job
  // ("writing"). Time is counted anew for it.
  void about(std::string_view subject);
  // A part of the job that tells no figures has begun: the bar is its name and how long it has taken.
  void busy(std::string_view subject);
  // Takes the bar off the screen: before anything else is said. It comes back with the next figure.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void tell(std::uint64_t done, std::uint64_t total, std::string_view unit);
  void begin(std::string_view subject, bool working);
  void draw_now_and_then();
  std::string line(std::size_t columns, Clock::time_point now) const;

  const std::string label_;
  bool draws_;
  const Clock::time_point job_begin_;
  std::mutex mutex_;  // of all below
  std::condition_variable ended_;
  bool drawn_ = false, working_ = false, ends_ = false;
  std::string subject_;
  std::string_view unit_;
  std::uint64_t done_ = 0, total_ = 0;
  Clock::time_point begin_;  // of the subject
  std::thread drawer_;       // so that a part that tells nothing for long is seen to be alive
};

}  // namespace weighbridge::cli

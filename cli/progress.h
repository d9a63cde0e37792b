// SPDX-License-Identifier: Apache-2.0
// A progress bar with rate and time left on standard error, if that is a terminal and the job is long. Its hook also
// stops the job after Ctrl-C.
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
  // `label`: the verb. With `quiet` it draws nothing but still stops the job on an interrupt.
  Progress(std::string_view label, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // For Context::progress; refers to this object. Counts bytes.
  std::function<bool(std::uint64_t, std::uint64_t)> hook();
  // The same, counting in `unit` ("texts").
  std::function<bool(std::uint64_t, std::uint64_t)> hook(std::string_view unit);
  // Begins a new subject, shown after the verb: one of several files, or a part of the job ("writing"). Its time starts
  // at zero.
  void about(std::string_view subject);
  // Begins a part of the job that reports no progress: the bar shows its name and the elapsed time.
  void busy(std::string_view subject);
  // Erases the bar. Call it before printing anything else; the bar comes back with the next report.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void update(std::uint64_t done, std::uint64_t total, std::string_view unit);
  void begin(std::string_view subject, bool working);
  void draw_now_and_then();
  std::string line(std::size_t columns, Clock::time_point now) const;

  const std::string label_;
  bool draws_;
  const Clock::time_point job_begin_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable ended_;
  bool drawn_ = false, working_ = false, ends_ = false;
  std::string subject_;
  std::string_view unit_;
  std::uint64_t done_ = 0, total_ = 0;
  Clock::time_point begin_;  // of the subject
  std::thread drawer_;       // keeps the clock moving while the job reports nothing
};

}  // namespace weighbridge::cli

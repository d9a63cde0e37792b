// SPDX-License-Identifier: Apache-2.0
// A bar with rate and time left on standard error, where that is a terminal and the job is long; and the way in which
// Ctrl-C reaches a job.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weighbridge::cli {

class Progress {
 public:
  // `label`: the verb. A quiet one draws nothing and still stops the job on an interrupt.
  Progress(std::string_view label, bool quiet);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // For Context::progress; refers to this object.
  std::function<bool(std::uint64_t, std::uint64_t)> hook();
  // Takes the bar off the screen: before anything else is said.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void tell(std::uint64_t done, std::uint64_t total);
  void draw(std::uint64_t done, std::uint64_t total, Clock::time_point now);

  std::string label_;
  bool draws_;
  bool drawn_ = false;
  Clock::time_point begin_, next_;
};

}  // namespace weighbridge::cli

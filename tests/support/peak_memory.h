// SPDX-License-Identifier: Apache-2.0
// How much memory a piece of work takes at most.
#pragma once
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace weighbridge::test {

// In bytes: the highest since the last call of restart_peak_memory(), or of the whole process where that cannot be had.
inline std::uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word; status.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib << 10;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

// Forgets what earlier tests of the program took, and returns what is taken now.
inline std::uint64_t restart_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5\n";
  return peak_memory();
}

}  // namespace weighbridge::test

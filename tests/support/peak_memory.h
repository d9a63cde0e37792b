// SPDX-License-Identifier: Apache-2.0
// Measures the peak memory of a piece of work.
#pragma once
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace weighbridge::test {

// The peak in bytes since the last call of restart_peak_memory(), or of the whole process if that is not available.
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

// Resets the peak, and returns the current memory.
inline std::uint64_t restart_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5\n";
  return peak_memory();
}

}  // namespace weighbridge::test

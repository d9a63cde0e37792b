// SPDX-License-Identifier: Apache-2.0
// How much memory this process has had at most.
#pragma once
#include <sys/resource.h>

#include <cstdint>

namespace weighbridge::test {

// In bytes; never falls.
inline std::uint64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
}

}  // namespace weighbridge::test

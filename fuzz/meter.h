// SPDX-License-Identifier: Apache-2.0
// Counts what a call costs, in numbers that are the same on every run: comparisons and indirect calls, which the
// compiler reports to libFuzzer, bytes copied, compared and read, and memory. A loop without any of these is not seen.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "weighbridge/source.h"

namespace weighbridge::fuzz {

struct Cost {
  std::uint64_t steps = 0;   // comparisons, indirect calls, 8 for each allocation and 1 for each 8 bytes
  std::uint64_t memory = 0;  // bytes that were allocated at once, at most
};

// Of the call itself and what it calls in this thread. Not reentrant.
Cost cost_of(const std::function<void()>& call);

// The same file, whose reads count. It cannot be mapped.
std::shared_ptr<const Source> metered(std::shared_ptr<const Source>);

}  // namespace weighbridge::fuzz

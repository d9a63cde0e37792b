// SPDX-License-Identifier: Apache-2.0
// Contexts whose progress hook says "stop" in one call only: the last one, after all work is done.
#pragma once
#include <cstdint>

#include "weighbridge/context.h"

namespace weighbridge::test {

// Runs `job(context)` in one thread, to count the calls, and returns a context for a second run that is refused in the
// last call. `calls` must outlive it.
template <typename Job> Context stopped_at_the_last_call(Job&& job, std::uint64_t& calls) {
  Context context;
  std::uint64_t all = 0;
  context.progress = [&](std::uint64_t, std::uint64_t) {
    ++all;
    return true;
  };
  job(context);
  calls = 0;
  context.progress = [all, &calls](std::uint64_t, std::uint64_t) { return ++calls != all; };
  return context;
}

}  // namespace weighbridge::test

// SPDX-License-Identifier: Apache-2.0
// How many generated inputs a test tries: changed, cut and random ones.
#pragma once
#include <cstdlib>

#include "support/sanitized.h"

namespace weighbridge::test {

// WEIGHBRIDGE_THOROUGH=1 is for those who have longer: make check-long.
inline const bool kThorough = std::getenv("WEIGHBRIDGE_THOROUGH") != nullptr;

// Of `full` inputs, which the sanitizers try because they see nearly all that such an input can break, the optimized
// build tries a quarter: it adds the bounds of time and memory.
template <class Count> Count rounds(Count full) { return kThorough ? 16 * full : kSanitized ? full : full / 4; }

}  // namespace weighbridge::test

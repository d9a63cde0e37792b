// SPDX-License-Identifier: Apache-2.0
// What a check can tell about the tensor data of a file: whether checksums cover it, and whether its end was ever
// written.
#pragma once
#include "core/findings.h"
#include "core/format.h"
#include "weighbridge/verify.h"

namespace weighbridge::registry {

// Fills in Verdict::parts, digests and checked.
void say_what_was_checked(const core::Format&, Verdict&);
// [reads] Warns of tensors at the end of a file that are zeros and that no checksum covers. Reads at most the last MiB
// of each file, and asks the system for holes.
void warn_of_zero_tail(const Place&, const Model&, core::Findings&);

}  // namespace weighbridge::registry

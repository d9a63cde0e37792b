// SPDX-License-Identifier: Apache-2.0
// Reads the envelope of a zTensor 1.x file (I.1, IV.1): magic numbers, footer and manifest.
#pragma once
#include <optional>

#include "core/draft.h"
#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::ztensor1 {

// The manifest, without the footer that follows it. nullopt if it cannot be read, which has been reported. Throws
// Error{io}, Stop.
std::optional<core::HeaderMemory> read_manifest(const Source&, const Context&, core::Findings&);

}  // namespace weighbridge::ztensor1

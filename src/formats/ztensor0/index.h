// SPDX-License-Identifier: Apache-2.0
// Reads the frame of a zTensor 0.1 file (sections 2, 3.1, 3.3): the magic number and the index.
#pragma once
#include <optional>

#include "core/draft.h"
#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::ztensor0 {

// The CBOR of the index, without the size that follows it. nullopt if it cannot be read, which has been reported.
// Throws Error{io}, Stop.
std::optional<core::HeaderMemory> read_index(const Source&, const Context&, core::Findings&);

}  // namespace weighbridge::ztensor0

// SPDX-License-Identifier: Apache-2.0
// Reads the container of a zTensor 2 file (section 2): magic numbers, footer and manifest.
#pragma once
#include <cstdint>
#include <optional>

#include "core/draft.h"
#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::ztensor2 {

struct Envelope {
  std::uint64_t manifest_offset = 0;
  core::HeaderMemory manifest;  // empty: a data shard, which has none
};
// nullopt if it cannot be read, which has been reported. Throws Error{io}, Stop.
std::optional<Envelope> read_envelope(const Source&, const Context&, core::Findings&);

// Whether a file of this size has the magic numbers and the version (7.3, first step).
bool is_container(const Source&);

}  // namespace weighbridge::ztensor2

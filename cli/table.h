// SPDX-License-Identifier: Apache-2.0
// The tables that people read, aligned by display width. Rows are appended to the output's buffer, none is held.
#pragma once
#include <cstdint>

#include "output.h"
#include "weighbridge/json.h"
#include "weighbridge/model.h"

namespace weighbridge::cli {

// Logical bytes of all parts.
std::uint64_t logical_size(const Tensor&);
// The summary line, metadata, one row a tensor, totals by dtype.
void print_table(Output&, const Inspection&);

}  // namespace weighbridge::cli

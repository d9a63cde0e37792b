// SPDX-License-Identifier: Apache-2.0
// The tables that people read, aligned by display width. Rows are appended to the output's buffer, none is held.
#pragma once
#include <cstdint>
#include <string_view>

#include "output.h"
#include "weighbridge/json.h"
#include "weighbridge/model.h"

namespace weighbridge::cli {

// Logical bytes of all parts.
std::uint64_t logical_size(const Tensor&);
// The summary line, metadata, one row a tensor, totals by dtype.
// `nothing_matches` is said in place of rows where the model has tensors and none was chosen. On a terminal long names
// are cut in the middle, so that a row is a line.
void print_table(Output&, const Inspection&, std::string_view nothing_matches);

}  // namespace weighbridge::cli

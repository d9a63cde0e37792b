// SPDX-License-Identifier: Apache-2.0
// The table that inspect prints, aligned by display width.
#pragma once
#include <cstdint>
#include <string_view>

#include "output.h"
#include "weighbridge/json.h"
#include "weighbridge/model.h"

namespace weighbridge::cli {

// Logical bytes of all parts.
std::uint64_t logical_size(const Tensor&);
// Prints the summary line, metadata, one row per tensor, and totals by dtype. On a terminal, long names are cut in the
// middle so that each row fits one line, unless `wide`.
void print_table(Output&, const Inspection&, bool wide);
// Prints only the rows, under their heading.
void print_rows(Output&, const Inspection&, bool wide);

}  // namespace weighbridge::cli

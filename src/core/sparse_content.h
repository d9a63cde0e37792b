// SPDX-License-Identifier: Apache-2.0
// Which tensors are sparse, and the content rules for them, for every container that has some.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/findings.h"
#include "core/progress.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// The roles of their parts. The values come first.
inline constexpr std::string_view kValues = "values", kIndices = "indices", kIndptr = "indptr", kCoords = "coords";

// Whether this build reads it as a sparse tensor, whose dense form may be far larger than the file.
bool is_sparse(const Tensor&) noexcept;

// The container's own rules.
struct SparseRules {
  const Rule& indptr;           // the row bounds do not ascend from 0 to the number of values
  const Rule& index_range;      // an index lies outside the shape
  const Rule& duplicate;        // several entries for one element
  const Rule& unchecked;        // duplicates (and the order) were not looked for, for lack of memory
  const Rule* order = nullptr;  // the column indices of a row do not ascend; null: they need not
};

// Reads the indices of all sparse tensors, several tensors at once, and appends findings in no particular order. Adds
// sparse_bytes() to the progress. Throws Error{io}, Cancelled.
void check_sparse(const Model&, const SparseRules&, const Context&, Progress&, std::vector<Finding>& out);
// The stored bytes of their index parts.
std::uint64_t sparse_bytes(const Model&) noexcept;

}  // namespace weighbridge::core

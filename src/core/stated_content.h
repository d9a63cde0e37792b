// SPDX-License-Identifier: Apache-2.0
// The content rules of containers whose index states digests of parts: the generations of zTensor.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "core/content.h"
#include "core/part_digest.h"
#include "core/sparse_content.h"

namespace weighbridge::core {

struct StatedRules {
  DigestText (*parse)(std::string_view) noexcept;  // a digest as the index has it
  const Rule& digest;                              // the bytes do not match it
  const Rule& encoding;                            // a part does not decode to its size
  const Rule* boolean;                             // a bool is neither 0 nor 1; null: it may be any byte
  SparseRules sparse;
};

// Checks all parts and sparse structures, then calls `more` for the container's own rules, and reports everything in
// order. Of several shares each checks some parts, and the first the rest. Parts that are cut from one blob are checked
// once, as the tensor's main part. Throws Error{io}, Cancelled.
void check_stated(const Model&, const StatedRules&, const Share&, const Context&, Findings&,
                  const std::function<void(Progress&, std::vector<Finding>&)>& more);

// Format::check_content of a format that has check_share: the check by one process.
template <void (*CheckShare)(const Model&, const Share&, const Context&, Findings&)>
void check_alone(const Model& model, const Context& context, Findings& findings) {
  CheckShare(model, {}, context, findings);
}

}  // namespace weighbridge::core

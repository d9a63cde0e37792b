// SPDX-License-Identifier: Apache-2.0
// Parts that share their bytes (reading G6: equal extents are aliases), for writers that keep them so.
#pragma once
#include <cstdint>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

// For each part of the model, tensors in order and their parts in order, counted through: the first one that has the
// same extent. A part without bytes is nobody's alias.
std::vector<std::uint32_t> first_aliases(const Model&);

// Whether two parts of one extent mean the same elements by it: a part of another dtype, encoding, byte order or order
// of its axes says something else with the same bytes.
bool same_elements(const Part&, const Part&);

}  // namespace weighbridge::core

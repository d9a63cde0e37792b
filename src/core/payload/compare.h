// SPDX-License-Identifier: Apache-2.0
// Compares two models, to check conversions in tests. Ignores the container (extents, encodings, digests, order).
#pragma once
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// [reads] Every difference of b from a, in a's order; items that only b has come last. `from` is what a has, `to` what
// b has, empty if nothing. Subjects are written as in plans: attributes["k"], extra["k"], tokenizer, tensors["w"],
// tensors["w"].attributes["k"], tensors["w"].parts["data"]. A part whose logical bytes differ has kind `precision`.
std::vector<Item> compare(const Model& a, const Model& b, const Context& = {});

}  // namespace weighbridge::core

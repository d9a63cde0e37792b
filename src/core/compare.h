// SPDX-License-Identifier: Apache-2.0
// What tells two models apart: the referee of conversions in tests. Containers (extents, encodings, digests, order) do
// not count.
#pragma once
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// [reads] Every difference of b from a, in a's order; what only b has comes last. `from` is what a has, `to` what b
// has, empty where it has nothing. Subjects are spelt as in plans: attributes["k"], extra["k"], tokenizer,
// tensors["w"], tensors["w"].attributes["k"], tensors["w"].parts["data"]. A part whose logical bytes differ is of the
// kind precision.
std::vector<Item> compare(const Model& a, const Model& b, const Context& = {});

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Dense tensors as sparse ones, and sparse ones in the other layout, for a writer that holds both.
#pragma once
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

struct Sparsified {
  Model model;  // a view
  std::vector<Item> changes;
};
// [reads] The model with its tensors in `layout`, sparse_csr or sparse_coo, as far as they fit it. An element is left
// out only if all of its bits are zero. Reads each dense tensor once, to count the others. The parts are made from the
// tensor when they are read, in bounded memory, except that an unsorted sparse_coo tensor is held to be sorted.
//
// A dense tensor becomes sparse if at most this share of its elements is not zero; density 0: if it then takes fewer
// bytes. `no_digest` is what becomes of a part's digest. Stays as it is: a tensor that shares bytes with another, one
// with unknown keys in a part, one of elements under 8 bits or without a zero, one whose rank does not fit.
Sparsified sparsified(const Model&, Layout layout, double density, std::string_view no_digest, const Context&);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Compares the elements of many pairs of tensors on the executor's threads. Large tensors whose bytes can be read at
// any offset are divided; the others are read by one thread each. The numbers do not depend on the division among
// threads.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "core/progress.h"
#include "diff/values.h"

namespace weighbridge::comparison {

// Two tensors with the same number of elements.
struct Pair {
  Elements a, b;
  bool in_order = true;  // the elements correspond in row-major order; else this pair is left out
  Compared found{};      // the result
};

// Whether both are stored in the same form, so that equal bytes of their parts mean equal elements; not for dense ones.
bool same_form(const Tensor& a, const Tensor& b);
// [reads] Whether two tensors of the same form have the same bytes.
bool same_parts(const Tensor& a, const Tensor& b, const Context&);
// What compare_pairs() will count, in bytes.
std::uint64_t bytes_to_compare(const Pair&);
// [reads] Fills in `found`. Where the bytes are the same, the sums of squares may be missing.
void compare_pairs(std::span<Pair> pairs, codecs::Tolerance, const Context&, core::Progress&);

}  // namespace weighbridge::comparison

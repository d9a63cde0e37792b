// SPDX-License-Identifier: Apache-2.0
// weighbridge/stats.h: what the elements of a tensor look like, in one pass over its payload and in constant memory.
#pragma once
#include <cstdint>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/value.h"

namespace weighbridge {

// NaN and infinities are counted and take no part in min, max and mean. A complex element counts as two numbers.
struct Stats {
  std::uint64_t elements = 0, zeros = 0, nans = 0, infinities = 0;
  Value min, max;   // exact: an integer for integers and booleans, else real; null where no element is finite
  double mean = 0;  // 0 where no element is finite
  bool operator==(const Stats&) const = default;
};

// [reads] Of the tensor's dense form: a quantised tensor is dequantised, the zeros of a sparse one are counted too.
// Throws as Tensor::stream_dense() does. Context::progress is told of the bytes of this tensor.
Stats statistics(const Tensor&, const Context& = {});

// How many finite elements lie in each of equal intervals between the least and the greatest one. Interval i begins at
// from + i * (to - from) / counts.size(); the last one has its end too. No counts at all: no element is finite.
struct Histogram {
  double from = 0, to = 0;
  std::vector<std::uint64_t> counts;
  bool operator==(const Histogram&) const = default;
};

// [reads] the dense form twice: once for the extremes. `bins` is 1 to 65536. Misuse: complex numbers, which have no
// order.
Histogram histogram(const Tensor&, std::uint32_t bins, const Context& = {});

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the elements of a tensor look like, in one pass over its payload and in constant memory.
#pragma once
#include <cstdint>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/value.h"

namespace weighbridge {

/// What the elements of a tensor look like. NaN and infinities are counted and take no part in min, max and mean. A
/// complex element counts as two numbers.
struct Stats {
  std::uint64_t elements = 0;    ///< all of them
  std::uint64_t zeros = 0;       ///< of either sign
  std::uint64_t nans = 0;        ///< not a number
  std::uint64_t infinities = 0;  ///< of either sign
  Value min;        ///< exact: an integer for integers and booleans, else real; null where no element is finite
  Value max;        ///< likewise
  double mean = 0;  ///< 0 where no element is finite
  bool operator==(const Stats&) const = default;
};

/// [reads] Of the tensor's dense form: a quantized tensor is dequantized, the zeros of a sparse one are counted too.
/// Throws as Tensor::stream_dense() does. Context::progress is told of the bytes of this tensor.
Stats statistics(const Tensor&, const Context& = {});

/// How many finite elements lie in each of equal intervals between the least and the greatest one. Interval i begins at
/// from + i * (to - from) / counts.size(); the last one has its end too. No counts at all: no element is finite.
struct Histogram {
  double from = 0;                    ///< the least finite element
  double to = 0;                      ///< the greatest one
  std::vector<std::uint64_t> counts;  ///< one for each interval
  bool operator==(const Histogram&) const = default;
};

/// [reads] The dense form twice: once for the extremes. `bins` is 1 to 65536. Misuse: complex numbers, which have no
/// order.
Histogram histogram(const Tensor&, std::uint32_t bins, const Context& = {});

}  // namespace weighbridge

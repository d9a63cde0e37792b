// SPDX-License-Identifier: Apache-2.0
// Payload that has to be made: codes and scales of quantised tensors (M7), key and value heads repeated or padded (M8).
// Streams the tensor's dense form, in memory that does not grow with it; a grouped-query head is held whole.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "formats/slm/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::slm {

using Make = std::function<void(const Context&, const std::function<void(std::span<const std::byte>)>&)>;

// The f32 values of a tensor as they are to be written.
struct Values {
  Tensor tensor;
  std::uint64_t head = 0;         // values of one head that is repeated; 0: none is
  std::uint64_t times = 1;        // how often each head stands
  std::uint64_t added_zeros = 0;  // values after the last
};

Make make_values(Values);
// Of groups of `group` values, a divisor of their number; `dtype` is q8_0 or q4_0.
Make make_codes(Values, Stored dtype, std::uint64_t group);
Make make_scales(Values, Stored dtype, std::uint64_t group);

}  // namespace weighbridge::slm

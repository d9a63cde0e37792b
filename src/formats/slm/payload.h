// SPDX-License-Identifier: Apache-2.0
// Payload that has to be made: codes and scales of quantized tensors (M7), key and value heads repeated or padded (M8),
// rows put in the order of the rotation (M9). Streams the tensor's dense form, in memory that does not grow with it; a
// head that is changed is held whole.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "codecs/blocks.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::slm {

using Make = std::function<void(const Context&, const std::function<void(std::span<const std::byte>)>&)>;

// The f32 values of a tensor as they are to be written.
struct Values {
  Tensor tensor;
  std::uint64_t head = 0;         // values of one head, where heads are changed; 0: none is
  std::uint64_t times = 1;        // how often each head stands
  std::uint64_t paired_row = 0;   // values of a row, where row i and i + half of a head become neighbors; 0: they stay
  std::uint64_t added_zeros = 0;  // values after the last
};

Make make_values(Values);
// Of groups of `group` values, a divisor of their number.
Make make_codes(Values, const codecs::ScaledEncoder&, std::uint64_t group);
Make make_scales(Values, const codecs::ScaledEncoder&, std::uint64_t group);

}  // namespace weighbridge::slm

// SPDX-License-Identifier: Apache-2.0
// Payload that must be computed: codes and scales of quantized tensors (M7), repeated or padded key and value heads
// (M8), rows reordered for the rotation (M9). Streams the tensor's dense form in constant memory, except that a changed
// head is held whole.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codecs/blocks.h"
#include "core/format.h"
#include "formats/slm/scan.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::slm_format {

using Make = std::function<void(const Context&, const std::function<void(std::span<const std::byte>)>&)>;

// The f32 values of a tensor as the file will hold them.
struct Values {
  Tensor tensor;
  std::uint64_t head = 0;         // values per head, if heads change; else 0
  std::uint64_t times = 1;        // copies of each head
  std::uint64_t paired_row = 0;   // values per row, if rows i and i + half of a head become neighbors; else 0
  std::uint64_t added_zeros = 0;  // zeros appended after the last value
};

Make make_values(Values);
// Codes or scales for groups of `group` values, which must divide the number of values.
Make make_codes(Values, const codecs::ScaledEncoder&, std::uint64_t group);
Make make_scales(Values, const codecs::ScaledEncoder&, std::uint64_t group);

// The last step of writing a file: checks its values and writes its checksum.

// The memory that the views of a layout point into, and the inputs of seal().
struct Sealed {
  std::deque<std::string> names;   // names of the output's tensors
  std::vector<ValueRange> ranges;  // f32 values; `tensor` is an index into `names`
  Model model;
};

// [reads] Makes one pass over the file, because the checksum is serial. Throws Error{malformed} for a value that an
// .slm must not have, Error{misuse} for a checksum of 0, which cannot be written (M1).
void seal(const Sealed&, const core::WrittenFile&);

}  // namespace weighbridge::slm_format

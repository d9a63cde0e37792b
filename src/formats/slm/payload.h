// SPDX-License-Identifier: Apache-2.0
// Payload that must be computed: codes and scales of quantized tensors (M7).
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "codecs/blocks.h"
#include "core/payload/elements.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "formats/slm/content.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"

namespace weighbridge::slm_format {

// Of values that are not changed before: see core::with_heads() for repeated or padded key and value heads (M8) and for
// rows reordered for the rotation (M9). Codes or scales for groups of `group` values, which must divide their number.
core::ElementsPtr codes_of(const Tensor&, core::ElementsPtr values, const codecs::ScaledEncoder&, std::uint64_t group);
core::ElementsPtr scales_of(const Tensor&, core::ElementsPtr values, const codecs::ScaledEncoder&, std::uint64_t group);

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

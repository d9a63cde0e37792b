// SPDX-License-Identifier: Apache-2.0
// The last touch to a written file: its values are looked at and its checksum put in.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/format.h"
#include "formats/slm/scan.h"

namespace weighbridge::slm {

// What the views of a layout point into, and what the seal has to know.
struct Sealed {
  std::deque<std::string> names;   // of the output's tensors
  std::vector<ValueRange> ranges;  // of f32 values, `tensor` an index in names
  Model model;
};

// [reads] One pass over the file, a serial chain as reading is. Throws Error{malformed} for a value that an .slm must
// not have, Error{misuse} for a checksum of 0, which cannot be written (M1).
void seal(const Sealed&, const core::WrittenFile&);

}  // namespace weighbridge::slm

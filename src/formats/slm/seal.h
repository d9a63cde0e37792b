// SPDX-License-Identifier: Apache-2.0
// The last step of writing a file: checks its values and writes its checksum.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/format.h"
#include "formats/slm/scan.h"

namespace weighbridge::slm {

// The memory that the views of a layout point into, and the inputs of seal().
struct Sealed {
  std::deque<std::string> names;   // names of the output's tensors
  std::vector<ValueRange> ranges;  // f32 values; `tensor` is an index into `names`
  Model model;
};

// [reads] Makes one pass over the file, because the checksum is serial. Throws Error{malformed} for a value that an
// .slm must not have, Error{misuse} for a checksum of 0, which cannot be written (M1).
void seal(const Sealed&, const core::WrittenFile&);

}  // namespace weighbridge::slm

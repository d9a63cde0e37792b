// SPDX-License-Identifier: Apache-2.0
// The walk over a model: for open, for the rules that read tensor data, and for the writer that replaces tensors in a
// copy.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/onnx/elements.h"

namespace weighbridge::onnx {

// Where a tensor of the draft is in the file.
struct Place {
  Range message{};              // of its TensorProto or AttributeProto, or SparseTensorProto
  std::uint64_t at = 0;         // of the field that contains it
  bool tensor = false;          // a TensorProto, so that its data can be replaced
  std::vector<Frame> within{};  // the messages around it, outermost first; only on request
};

struct Walked {
  std::vector<Place> places;  // of the draft's tensors, before duplicates are dropped
  // The facts that the rules about tensor data need.
  struct Typed {
    std::string tensor;
    std::uint64_t at = 0;
    NumberField field;
  };
  std::vector<Typed> typed{};
  std::vector<StatedChecksum> checksums{};
};

// What to collect besides the draft.
struct Wanted {
  bool within = false, content = false;
};
Walked walk(const Source&, const Context&, core::Findings&, core::Draft&, Wanted = {});

}  // namespace weighbridge::onnx

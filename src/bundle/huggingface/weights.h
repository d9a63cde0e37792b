// SPDX-License-Identifier: Apache-2.0
// The weights of a folder: model.safetensors, or shards and the index that must match them both ways.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bundle/huggingface/json_file.h"
#include "weighbridge/model.h"

namespace weighbridge::huggingface {

struct Weights {
  std::vector<std::string> files;  // in the order of their names
  std::vector<Model> models;       // of each file
  // The sound tensors (model, index), in the order of the files' own indices.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tensors;
};
Weights read_weights(Reading&, const Context&);

}  // namespace weighbridge::huggingface

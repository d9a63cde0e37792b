// SPDX-License-Identifier: Apache-2.0
// GPTQ's four tensors of a linear layer as one quantized_group, and back. Both are views: codes and scales stay where
// they are, zeros and g_idx are computed while they are read.
#pragma once
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"

namespace weighbridge::convert {

struct Gptq {
  Model model;
  std::vector<Item> changes;  // layers that were converted, and those that stay as they are, with the reason
};
// `zeros` is Options::gptq. [reads] g_idx. Throws Error{misuse} if the model has no such layer, or does not say how
// zeros are stored.
Gptq group_gptq(const Model&, std::string_view zeros);
// The reverse. Reading qzeros may throw Error "convert/gptq-zeros".
Gptq split_gptq(const Model&, std::string_view zeros);

}  // namespace weighbridge::convert

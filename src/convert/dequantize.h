// SPDX-License-Identifier: Apache-2.0
// Quantized tensors as dense ones: a view whose values are computed while they are read.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weighbridge/convert.h"

namespace weighbridge::convert {

struct Dequantized {
  Model model;
  std::vector<Item> losses, changes;
};
// `to` is Options::dequantize. Tensors that this build cannot interpret stay what they are. Throws Error with rule
// "convert/nothing-quantized" if no tensor is quantized.
Dequantized dequantized(const Model&, DType to);

// What a loss of layout becomes: "dense f16".
std::string dense_text(DType);

// The change that a factor stays a tensor of its own when `tensor`, one of the model, becomes dense: llama.cpp
// multiplies the product with an nvfp4 matrix `x.weight` by the one number of `x.scale`. nullopt: there is none.
std::optional<Item> factor_stays(const Model&, const Tensor& tensor);

}  // namespace weighbridge::convert

// SPDX-License-Identifier: Apache-2.0
// Dense forms of sparse and quantised tensors, from their parts.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "codecs/dequant.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// Fills `out`, all zeros and of the dense size, from a sparse_csr or sparse_coo tensor. Throws Error{malformed} for
// indices that are out of range, Error{io}. Holds the tensor's parts in memory, under limits.decoded.
void fill_sparse(const Tensor&, const Context&, std::span<std::byte> out);

// What the attributes, shape and parts of a quantized_group tensor say (reading Y5); problem() tells whether it can be
// read.
codecs::QuantizedGroup quantized_group_of(const Tensor&);

// The f32 dense form of a quantized_group tensor, in pieces of at most kPiece bytes where a word row fits one; scales
// and zeros are held in memory, packed words are streamed.
void stream_quantized_group(const Tensor&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core

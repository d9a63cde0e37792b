// SPDX-License-Identifier: Apache-2.0
// Dense forms of sparse and quantized tensors, from their parts.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

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

// The quantizations of quantized_row and quantized_block that this build can undo, told apart by the type name (SLM's,
// reading M7; reading Y10 for .zt). The parts are `data`, i8 or u8, and `scales`, f32, one for each `group` values.
struct ScaledCodes {
  std::uint64_t elements = 0, group = 0;
  bool nibbles = false;  // q4_0, else q8_0
  std::uint64_t data_size() const noexcept { return nibbles ? elements / 2 : elements; }
  std::uint64_t scale_count() const noexcept { return group == 0 ? 0 : elements / group; }
};
// Rows are the slowest dimension where there are two or more, else one. nullopt: another type, a block size that its
// layout or shape does not allow, a rank of 0.
std::optional<ScaledCodes> scaled_codes(Layout, std::string_view type, Shape, std::uint64_t block_size) noexcept;
// Of a tensor whose parts have the dtypes and sizes that it demands too.
std::optional<ScaledCodes> scaled_codes_of(const Tensor&);

// The f32 dense form of such a tensor, in pieces of at most kPiece bytes and in constant memory where the scales are
// stored raw. Throws Error{unsupported} where scaled_codes_of() has nothing.
void stream_scaled_codes(const Tensor&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core

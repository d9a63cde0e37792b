// SPDX-License-Identifier: Apache-2.0
// Tensors whose elements are blocks: their parameters and their dense form, for every row of the table of block types.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "codecs/blocks.h"
#include "core/elements.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// The parameters of such a tensor, not validated: see codecs::block_problem(). `dtypes` are those of its parts in the
// order of the type's roles.
codecs::BlockForm block_form(const BlockTypeInfo&, Shape, std::span<const Value::Entry> attributes,
                             std::span<const DType> dtypes);
// For a tensor with a block_type(); a missing part has DType::unknown.
codecs::BlockForm block_form(const Tensor&);
// Nothing unless the tensor can be read: a known block type, valid parameters, and parts of the right sizes.
std::optional<codecs::BlockForm> readable_blocks(const Tensor&);

// Decodes the blocks of the requested elements only. Null unless the tensor has readable_blocks() and all its parts are
// stored uncompressed.
std::shared_ptr<const Elements> block_elements(const Tensor&);
// The f32 dense form, in pieces of at most kPiece bytes if the type's decoding unit fits. Streams the main part; reads
// the others in windows if they are stored uncompressed, else holds them within limits.decoded. Throws
// Error{unsupported} if this build cannot decode the blocks, Error{malformed} if parts have wrong sizes.
void stream_blocks(const Tensor&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Tensors whose elements are blocks: what their shape, attributes and parts say, and their dense form, for every row of
// the table of block types.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "codecs/blocks.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// The parameters of such a tensor, whether they make sense or not: codecs::block_problem() says that. `dtypes` are
// those of its parts in the order of the type's roles.
codecs::BlockForm block_form(const BlockTypeInfo&, Shape, std::span<const Value::Entry> attributes,
                             std::span<const DType> dtypes);
// Of a tensor with a block_type(); a part that it lacks has DType::unknown.
codecs::BlockForm block_form(const Tensor&);
// Of a tensor that can be read: of a known block type, with parameters that make sense and parts of the sizes that they
// demand.
std::optional<codecs::BlockForm> readable_blocks(const Tensor&);

// The f32 dense form, in pieces of at most kPiece bytes where what the type decodes at once fits one. The main part is
// streamed; the others are read in windows where they are stored as they are, else held under limits.decoded. Throws
// Error{unsupported} where this build cannot undo the blocks, Error{malformed} where parts have other sizes.
void stream_blocks(const Tensor&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Delivers strided elements of a file in row-major order.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Delivers the elements [first, first + count) of a raw strided part in row-major order, reading no others, in pieces
// of whole elements of at most `piece` bytes, in stored byte order. The range lies in the shape. Offsets outside [0,
// extent.length) are Error{malformed}. Element width is a whole number of bytes. Returns false if the sink stopped it.
bool stream_strided(const Source&, Extent, Shape, std::span<const std::int64_t> strides, std::uint32_t width,
                    std::uint64_t first, std::uint64_t count, std::uint64_t piece,
                    const std::function<bool(std::span<std::byte>)>& sink);

// What it costs to read one element of such a part, in bytes: neighbors that are far apart are read one by one.
std::uint64_t strided_cost(Shape, std::span<const std::int64_t> strides, std::uint32_t width) noexcept;

}  // namespace weighbridge::core

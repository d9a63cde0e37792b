// SPDX-License-Identifier: Apache-2.0
// Delivers strided elements of a file in row-major order.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Delivers the elements of a raw strided part in row-major order, in pieces of whole elements of at most `piece` bytes,
// in stored byte order. Offsets outside [0, extent.length) are Error{malformed}. Element width is a whole number of
// bytes. Returns false if the sink stopped it.
bool stream_strided(const Source&, Extent, Shape, std::span<const std::int64_t> strides, std::uint32_t width,
                    std::uint64_t piece, const std::function<bool(std::span<std::byte>)>& sink);

// The rows of the slowest dimension that contain elements [first, first + count) of a strided part, as a part with the
// same strides that begins at element `first_element` of the whole. count > 0, and the range lies in the shape.
struct StridedRows {
  Extent extent{};
  std::vector<std::uint64_t> shape{};
  std::uint64_t first_element = 0;
};
StridedRows strided_rows(const Extent&, Shape, std::span<const std::int64_t> strides, std::uint32_t width,
                         std::uint64_t first, std::uint64_t count);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Converts stored bytes to logical ones. Owns the size of a piece and the decoding of one encoded part.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Except for the last, pieces are a multiple of 192 bytes: a whole number of elements of every dtype, including 6-bit
// ones.
inline constexpr std::uint64_t kPiece = std::uint64_t{192} * 21845;  // just under 4 MiB

// Decodes a part to exactly its logical size, in stored form (neither byte-swapped nor normalized). Throws
// Error{malformed} with rule "part/<codec>" if the stored bytes do not decode to that size, Error{io}.
void decode_part(const Part&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core

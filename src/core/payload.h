// SPDX-License-Identifier: Apache-2.0
// From stored bytes to logical ones. Owns the size of a piece and the decoding of one encoded part.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Pieces are a multiple of 192 bytes (the last one aside), which is a whole number of elements of every dtype, 6-bit
// ones included.
inline constexpr std::uint64_t kPiece = std::uint64_t{192} * 21845;  // just under 4 MiB

// Decodes a part that a codec encoded to exactly its logical size, bytes as the encoder took them (neither swapped nor
// normalized). Throws Error{malformed} with rule "part/<codec>" where the stored bytes do not decode to that,
// Error{io}.
void decode_part(const Part&, const Context&, const std::function<bool(std::span<const std::byte>)>& sink);

}  // namespace weighbridge::core

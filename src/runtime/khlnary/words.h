// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share about words; the public part is weighbridge/khlnary.h.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "weighbridge/khlnary.h"

namespace weighbridge::khlnary::internal {

inline constexpr std::uint64_t kWordSize = 4;

// For example "0x0a"; at least `digits` digits.
std::string hex(std::uint32_t value, std::size_t digits);

inline Glyph::Id glyph_of(std::uint32_t word) noexcept { return static_cast<Glyph::Id>(fields(word).glyph); }
// The payload as a constant or the offset of a jump.
constexpr std::int32_t signed_payload(std::uint8_t payload) noexcept { return static_cast<std::int8_t>(payload); }
// The file and the tensor that a LOAD_BIN_TENSOR names (section 6.2).
constexpr std::uint8_t file_of(std::uint8_t payload) noexcept { return payload >> 4; }
constexpr std::uint8_t tensor_of(std::uint8_t payload) noexcept { return payload & 0xF; }

}  // namespace weighbridge::khlnary::internal

// SPDX-License-Identifier: Apache-2.0
// Boolean bytes and packed codes: rewrites of elements that do not convert numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weighbridge::codecs {

// Every nonzero byte becomes 1 (readings T6, Z7).
void normalize_bools(std::span<std::byte> data) noexcept;
// Index of the first byte other than 0 and 1.
std::optional<std::uint64_t> find_non_bool(std::span<const std::byte> data) noexcept;

// Codes of `bits` (2, 4 or 6) each, packed without gaps, least significant bits first, to and from one code per byte.
// `packed` has ceil(codes.size() * bits / 8) bytes; packing fills the spare bits of the last one with 0 and ignores the
// codes' high bits.
void unpack_codes(std::uint32_t bits, std::span<const std::byte> packed, std::span<std::byte> codes) noexcept;
void pack_codes(std::uint32_t bits, std::span<const std::byte> codes, std::span<std::byte> packed) noexcept;

}  // namespace weighbridge::codecs

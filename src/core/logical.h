// SPDX-License-Identifier: Apache-2.0
// Reads logical bytes of a part at any offset, for parts whose stored bytes are nearly the logical ones. Several
// threads can share a large part, and one read can serve many small ones. Other parts go through Part::stream().
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Whether the part is raw, row-major, of a known dtype and has an extent: logical byte i comes from byte i of the
// extent, or from the same element.
bool is_direct(const Part&) noexcept;
// [reads] out = the logical bytes [offset, offset + out.size()). The part is direct, the range lies within size(), and
// each end is a multiple of 8 or the part's end.
void read_direct(const Part&, std::uint64_t offset, std::span<std::byte> out);

struct PartRead {
  Part part;                 // direct
  std::span<std::byte> out;  // size() bytes
};
// [reads] Reads whole parts with one call per source; Source::read() combines neighbors.
void read_direct(std::span<const PartRead> reads);

}  // namespace weighbridge::core

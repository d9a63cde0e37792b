// SPDX-License-Identifier: Apache-2.0
// Logical bytes of a part at any offset, for those parts whose stored bytes nearly are the logical ones. Lets several
// threads share one large part, and one read serve many small ones. Everything else goes through Part::stream().
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Raw, row-major, of a known dtype, with an extent: byte i of the logical bytes comes from byte i of the extent or its
// element.
bool is_direct(const Part&) noexcept;
// [reads] out = the logical bytes [offset, offset + out.size()). The part is direct, the range lies within size(), and
// both ends are multiples of 8 or the part's end.
void read_direct(const Part&, std::uint64_t offset, std::span<std::byte> out);

struct PartRead {
  Part part;                 // direct
  std::span<std::byte> out;  // size() bytes
};
// [reads] All of each part, by one call for each source: Source::read() makes one reading of neighbors.
void read_direct(std::span<const PartRead> reads);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// The lattices of GGML's iq2 and iq3 types as their encoders use them: which point has these levels, and which points
// are nearest to levels that no point has.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/ggml.h"

namespace weighbridge::codecs {

class GgmlGrid {
 public:
  // `packed`: the levels of each point, `bits` each, the first one lowest. `shells`: points at so many of the smallest
  // distances count as near.
  GgmlGrid(std::span<const std::uint16_t> packed, unsigned bits, unsigned shells);

  // The point with these packed levels, or -1.
  int point(unsigned levels) const noexcept { return entries_[levels] >= 0 ? entries_[levels] : -1; }
  // The points near levels that no point has: by distance, then by number.
  std::span<const std::uint16_t> near(unsigned levels) const noexcept {
    const std::uint16_t* const from = near_.data() + (-entries_[levels] - 1);
    return {from + 1, *from};
  }
  unsigned packed(int point) const noexcept { return packed_[static_cast<std::size_t>(point)]; }

 private:
  std::span<const std::uint16_t> packed_;
  std::vector<std::int32_t> entries_;  // by packed levels: a point, or less than 0: where near_ has a count and points
  std::vector<std::uint16_t> near_;
};

// Of an iq2 or iq3 type; made when first asked for.
const GgmlGrid& ggml_grid(Ggml type);

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
/// \file
/// How several processes divide the check of one file.
#pragma once
#include <cstdint>

namespace weighbridge {

/// One of several processes that verify the same file together. The process with index 0 reports everything except the
/// payload findings of the others; each of the others reports only the payload findings of its own share. The division
/// depends on the file, the options, the limits and `of`. In formats without digests of parts, index 0 does everything.
struct Share {
  std::uint32_t index = 0;  ///< below `of`
  std::uint32_t of = 1;     ///< how many there are, 1 to 4096
};

}  // namespace weighbridge

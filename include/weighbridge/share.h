// SPDX-License-Identifier: Apache-2.0
/// \file
/// How several processes divide the check of one file.
#pragma once
#include <cstdint>

namespace weighbridge {

/// One of several processes that verify the same file together. That of index 0 reports everything but the payload
/// findings of the others; each of the others reports only those of its own share. What is in a share depends on the
/// file, on the options and limits, and on `of`. Formats without digests of their parts leave everything to index 0.
struct Share {
  std::uint32_t index = 0;  ///< below `of`
  std::uint32_t of = 1;     ///< how many there are, 1 to 4096
};

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Ranges of zeros that no tensor explains: a download that reserved its space and stopped, or lost a block.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/doctor.h"
#include "weighbridge/source.h"

namespace weighbridge::doctor {

// Zeros are counted in blocks of this many bytes, the blocks of file systems and downloads.
inline constexpr std::size_t kZeroBlock = 4096;

struct Zeros {
  // The largest range of whole zero blocks, of at least `least` bytes, that begins or ends inside one of the extents,
  // more than a block away from its ends. A tensor that is zeros from end to end is not such a range.
  std::optional<ByteRange> hole{};
  std::uint64_t tail = 0;  // where the zeros begin that reach the end of the file; its size if it ends otherwise
};

// [reads] The whole file. `extents` are those of its tensors.
Zeros find_zeros(const Source&, std::vector<ByteRange> extents, std::uint64_t least, const Context&);

}  // namespace weighbridge::doctor

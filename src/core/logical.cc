// SPDX-License-Identifier: Apache-2.0
// Positional reads of logical bytes: the stored bytes in little-endian order, with bools as 0 and 1.
#include "core/payload.h"

#include "base/endian.h"
#include "core/state.h"

namespace weighbridge::core {
namespace {

void make_logical(const Part& part, std::span<std::byte> bytes) {
  if (part.dtype() == DType::boolean) {
    for (std::byte& b : bytes) b = std::byte{b != std::byte{0}};
  } else if (part.order() == Order::big) {
    base::swap_units(bytes, info(part.dtype()).swap_bytes);
  }
}

}  // namespace

bool is_direct(const Part& part) noexcept {
  const auto extent = part.extent();
  return part.encoding() == Encoding::raw && extent && extent->length == part.size() &&
         part.dtype() != DType::unknown && part.strides().empty() && !cut_of(part);
}

void read_direct(const Part& part, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  const Extent extent = *part.extent();
  source_of(part).read_at(extent.offset + offset, out);
  make_logical(part, out);
}

void read_direct(std::span<const PartRead> reads) {
  std::vector<ReadRange> ranges;
  for (std::size_t first = 0; first < reads.size();) {
    const Source& source = source_of(reads[first].part);
    ranges.clear();
    std::size_t last = first;
    for (; last < reads.size(); ++last) {
      const Extent extent = *reads[last].part.extent();
      if (&source_of(reads[last].part) != &source) break;
      if (!reads[last].out.empty()) ranges.push_back({extent.offset, reads[last].out});
    }
    source.read(ranges);
    first = last;
  }
  for (const PartRead& read : reads) make_logical(read.part, read.out);
}

}  // namespace weighbridge::core

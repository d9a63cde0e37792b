// SPDX-License-Identifier: Apache-2.0
// Positional reads of logical bytes: the stored bytes, put into little-endian order, bools into 0 and 1.
#include "core/logical.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/endian.h"
#include "core/state.h"

namespace weighbridge::core {
namespace {

// A gap between two parts is read along with them up to this size: a second read costs more.
constexpr std::uint64_t kGap = 4096;
// A part of this size is worth a read of its own, straight to where it belongs.
constexpr std::uint64_t kOwnRead = 64 * 1024;

void make_logical(const Part& part, std::span<std::byte> bytes) {
  if (part.dtype() == DType::boolean) {
    for (std::byte& b : bytes) b = std::byte{b != std::byte{0}};
  } else if (part.order() == Order::big) {
    base::swap_units(bytes, info(part.dtype()).swap_bytes);
  }
}

const Source& source_of(const Part& part, const Extent& extent) { return *Access::state(part).sources[extent.source]; }

}  // namespace

bool is_direct(const Part& part) noexcept {
  const auto extent = part.extent();
  return part.encoding() == Encoding::raw && extent && extent->length == part.size() &&
         part.dtype() != DType::unknown && part.strides().empty();
}

void read_direct(const Part& part, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  const Extent extent = *part.extent();
  source_of(part, extent).read_at(extent.offset + offset, out);
  make_logical(part, out);
}

void read_direct(std::span<const PartRead> reads, std::span<std::byte> scratch) {
  for (std::size_t first = 0; first < reads.size();) {
    const Extent begin = *reads[first].part.extent();
    std::uint64_t end = begin.offset + begin.length;
    std::size_t last = first + 1;
    for (; last < reads.size() && begin.length < kOwnRead; ++last) {
      const Extent next = *reads[last].part.extent();
      if (next.length >= kOwnRead || next.source != begin.source || next.offset < end || next.offset - end > kGap ||
          next.offset - begin.offset > scratch.size() || next.length > scratch.size() - (next.offset - begin.offset) ||
          &source_of(reads[last].part, next) != &source_of(reads[first].part, begin))
        break;
      end = next.offset + next.length;
    }
    if (last - first == 1) {
      read_direct(reads[first].part, 0, reads[first].out);
    } else {
      const auto run = scratch.first(base::to_size(end - begin.offset));
      source_of(reads[first].part, begin).read_at(begin.offset, run);
      for (std::size_t i = first; i < last; ++i) {
        const auto at = base::to_size(reads[i].part.extent()->offset - begin.offset);
        if (!reads[i].out.empty()) std::memcpy(reads[i].out.data(), run.data() + at, reads[i].out.size());
        make_logical(reads[i].part, reads[i].out);
      }
    }
    first = last;
  }
}

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
#include "doctor/damage.h"

#include <cstring>

#include "core/model/progress.h"
#include "io/read.h"

namespace weighbridge::doctor {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Whether `at` lies inside one of the extents, more than a block away from its ends.
bool cuts(const std::vector<ByteRange>& sorted, std::uint64_t at) {
  const auto next = std::ranges::upper_bound(sorted, at, {}, &ByteRange::offset);
  if (next == sorted.begin()) return false;
  const ByteRange& extent = *std::prev(next);
  return at - extent.offset > kZeroBlock && extent.length > at - extent.offset &&
         extent.length - (at - extent.offset) > kZeroBlock;
}

}  // namespace

Zeros find_zeros(const Source& source, std::vector<ByteRange> extents, std::uint64_t minimum, const Context& context) {
  std::ranges::sort(extents, {}, &ByteRange::offset);
  Zeros out;
  ByteRange run;  // the zeros that reach to where the scan is
  const auto end_run = [&](std::uint64_t at) {
    const bool inside = cuts(extents, run.offset) || cuts(extents, at);
    if (run.length >= minimum && inside && (!out.hole || run.length > out.hole->length)) out.hole = run;
  };
  core::Progress progress(context, source.size());
  io::read_pieces(source, 0, source.size(), [&](std::uint64_t at, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += kZeroBlock) {
      const auto block = bytes.subspan(i, std::min<std::size_t>(kZeroBlock, bytes.size() - i));
      if (is_zero(block)) {
        run.length += block.size();
        continue;
      }
      end_run(at + i);
      if (run.offset == 0 && run.length > 0) out.head = run.length;
      run = {at + i + block.size(), 0};
      const auto last = std::find_if(block.rbegin(), block.rend(), [](std::byte each) { return each != std::byte{0}; });
      out.tail = run.offset - static_cast<std::uint64_t>(last - block.rbegin());
    }
    progress.add(bytes.size());
    return true;
  });
  end_run(source.size());
  progress.finish();
  return out;
}

}  // namespace weighbridge::doctor

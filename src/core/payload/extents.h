// SPDX-License-Identifier: Apache-2.0
// A sorted index of byte ranges: which ranges are equal (aliases), which share some bytes (overlaps, reading G6), which
// are neighbors. Formats check overlaps with it, writers place parts, and jobs read each range once.
#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::core {

struct Range {
  std::uint32_t source = 0;
  std::uint64_t offset = 0, length = 0;  // their sum has been checked
  std::uint32_t item = 0;                // caller-defined id
  auto operator<=>(const Range&) const = default;
  std::uint64_t end() const noexcept { return offset + length; }
  bool same_bytes(const Range& o) const noexcept {
    return source == o.source && offset == o.offset && length == o.length;
  }
};

// How a range relates to the ranges before it in its source.
enum class Relation : std::uint8_t {
  separate,  // shares no byte with them
  alias,     // has exactly the bytes of the previous one
  overlap    // shares some bytes with one of them
};

// Takes 32 bytes per range. Immutable, so any thread may use it.
class Extents {
 public:
  explicit Extents(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
    if (!std::is_sorted(ranges_.begin(), ranges_.end())) std::sort(ranges_.begin(), ranges_.end());
  }
  // The extents of a model's parts. Items number all parts, in the order of tensors and of their parts.
  static Extents of(const Model&);

  // Sorted by source, offset, length, item; includes empty ranges.
  std::span<const Range> sorted() const noexcept { return ranges_; }

  // Calls visit(range, Relation, furthest) for each nonempty range in order. `furthest` is the earlier range of the
  // same source that ends last, if any.
  template <class Visit> void walk(Visit visit) const {
    const Range *before = nullptr, *furthest = nullptr;
    for (const Range& range : ranges_) {
      if (range.length == 0) continue;
      if (before && before->source != range.source) before = furthest = nullptr;
      const Relation relation = before && before->same_bytes(range)          ? Relation::alias
                                : furthest && range.offset < furthest->end() ? Relation::overlap
                                                                             : Relation::separate;
      visit(range, relation, furthest);
      before = &range;
      if (!furthest || range.end() >= furthest->end()) furthest = &range;
    }
  }

  // The number of bytes in any range, each counted once.
  std::uint64_t distinct_bytes() const;

 private:
  std::vector<Range> ranges_;
};

// How the parts of a model share bytes, for writers. Indexed by part, as in Extents::of().
struct Sharing {
  std::vector<std::uint32_t> first;   // the first part with exactly these bytes, or itself
  std::vector<std::uint32_t> partly;  // an earlier part in the file that shares some of these bytes, or kNone
  std::vector<std::uint32_t> tensor;  // the part's tensor
};
Sharing sharing(const Model&);

// Whether two parts with the same extent have the same elements. The same bytes are other elements under another dtype,
// encoding, byte order or order of axes.
bool same_elements(const Part&, const Part&);

}  // namespace weighbridge::core

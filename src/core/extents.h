// SPDX-License-Identifier: Apache-2.0
// One sorted index of byte ranges: who has the same bytes as whom (aliases), who shares some of them (overlaps, reading
// G6), what lies next to what. Formats judge with it, writers place with it, jobs read each range once with it. Leaves
// to others what a shared byte means.
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
  std::uint32_t item = 0;                // whose it is: the caller's number
  auto operator<=>(const Range&) const = default;
  std::uint64_t end() const noexcept { return offset + length; }
  bool same_bytes(const Range& o) const noexcept {
    return source == o.source && offset == o.offset && length == o.length;
  }
};

// What a range is to those that begin before it in its source.
enum class Meeting : std::uint8_t {
  apart,   // it shares no byte with them
  alias,   // the one before it in order has exactly its bytes
  overlap  // it shares some bytes with one of them
};

// 32 bytes for each range. Immutable: any thread may ask.
class Extents {
 public:
  explicit Extents(std::vector<Range> ranges) : ranges_(std::move(ranges)) {
    if (!std::is_sorted(ranges_.begin(), ranges_.end())) std::sort(ranges_.begin(), ranges_.end());
  }
  // Those of a model's parts; an item is a part, tensors in order and their parts in order, counted through.
  static Extents of(const Model&);

  // By source, offset, length, item; empty ones too.
  std::span<const Range> sorted() const noexcept { return ranges_; }

  // Calls meet(range, Meeting, widest) for each range with bytes in order. `widest`: of those before it in its source
  // the one that ends last; none before the first one of a source.
  template <class Meet> void walk(Meet meet) const {
    const Range *before = nullptr, *widest = nullptr;
    for (const Range& range : ranges_) {
      if (range.length == 0) continue;
      if (before && before->source != range.source) before = widest = nullptr;
      const Meeting meeting = before && before->same_bytes(range)      ? Meeting::alias
                              : widest && range.offset < widest->end() ? Meeting::overlap
                                                                       : Meeting::apart;
      meet(range, meeting, widest);
      before = &range;
      if (!widest || range.end() >= widest->end()) widest = &range;
    }
  }

  // Bytes that are in some range, each counted once.
  std::uint64_t distinct_bytes() const;

 private:
  std::vector<Range> ranges_;
};

// How the parts of a model share bytes, for writers. Indexed by part, counted through as in Extents::of.
struct Sharing {
  std::vector<std::uint32_t> first;   // the first part with exactly these bytes, itself where there is none
  std::vector<std::uint32_t> partly;  // a part with some of these bytes that lies before it in the file, or kNone
  std::vector<std::uint32_t> tensor;  // whose part it is
};
Sharing sharing(const Model&);

// Whether two parts of one extent mean the same elements by it: a part of another dtype, encoding, byte order or order
// of its axes says something else with the same bytes.
bool same_elements(const Part&, const Part&);

}  // namespace weighbridge::core

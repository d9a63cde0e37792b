// SPDX-License-Identifier: Apache-2.0
// Checks values piece by piece.
#include "formats/slm/scan.h"

#include <algorithm>
#include <tuple>

#include "base/endian.h"

namespace weighbridge::slm_format {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000U;

constexpr bool bad(ValueRule rule, std::uint32_t bits) noexcept {
  // Positive and finite are the patterns 1 to kInfinity - 1: one unsigned comparison.
  return rule == ValueRule::finite ? (bits & kInfinity) == kInfinity : bits - 1 >= kInfinity - 1;
}

// The index of the first bad value, or `count`. Checks whole blocks without branches, so that the compiler vectorizes
// the loop.
template <ValueRule rule> std::uint64_t first_bad(const std::byte* values, std::uint64_t count) noexcept {
  constexpr std::uint64_t kBlock = 64;
  std::uint64_t i = 0;
  for (; count - i >= kBlock; i += kBlock) {
    std::uint32_t any = 0;
    for (std::uint64_t k = 0; k < kBlock; ++k)
      any |= bad(rule, base::load_le<std::uint32_t>(values + 4 * (i + k))) ? 1U : 0U;
    if (any != 0) break;
  }
  while (i < count && !bad(rule, base::load_le<std::uint32_t>(values + 4 * i))) ++i;
  return i;
}

}  // namespace

ValueScan::ValueScan(std::vector<ValueRange> ranges) {
  std::ranges::stable_sort(ranges, {}, [](const ValueRange& r) { return std::tuple(r.rule, r.offset % 4, r.offset); });
  for (const ValueRange& range : ranges) {
    if (range.length == 0) continue;
    const bool same = !lanes_.empty() && lanes_.back().rule == range.rule &&
                      lanes_.back().ranges.front().offset % 4 == range.offset % 4;
    if (!same) lanes_.push_back({.rule = range.rule, .ranges = {}});
    lanes_.back().ranges.push_back(range);
  }
}

void ValueScan::piece(std::uint64_t offset, std::span<const std::byte> bytes) {
  for (Lane& lane : lanes_) walk(lane, offset, bytes);
}

void ValueScan::open(Lane& lane, std::uint64_t before) {
  while (lane.opened < lane.ranges.size() && lane.ranges[lane.opened].offset < before) {
    const ValueRange& range = lane.ranges[lane.opened++];
    lane.open_end = std::max(lane.open_end, range.offset + range.length);
  }
}

void ValueScan::walk(Lane& lane, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  while (lane.first < lane.ranges.size()) {
    if (lane.first == lane.opened) {  // no open range: continue where the next one begins
      lane.at = std::max(lane.at, lane.ranges[lane.opened].offset);
      if (lane.at >= end) return;
      open(lane, lane.at + 1);
    }
    if (lane.at >= lane.open_end) {
      lane.first = lane.opened;
      continue;
    }
    const std::uint64_t count = (std::min(lane.open_end, end) - lane.at) / 4;
    const std::byte* const values = bytes.data() + (lane.at - offset);
    const std::uint64_t good = lane.rule == ValueRule::finite ? first_bad<ValueRule::finite>(values, count)
                                                              : first_bad<ValueRule::positive>(values, count);
    lane.at += 4 * good;
    open(lane, lane.at + 1);  // ranges that began on the way
    if (good < count) {
      blame(lane, lane.at);
      lane.at += 4;
    } else if (lane.at < lane.open_end && end - lane.at < 4) {
      return;  // the rest, perhaps part of a value, is repeated at the start of the next piece
    }
  }
}

void ValueScan::blame(Lane& lane, std::uint64_t offset) {
  for (; lane.first < lane.opened; ++lane.first) {
    const ValueRange& range = lane.ranges[lane.first];
    if (offset - range.offset < range.length) bad_.push_back({offset, range.tensor, lane.rule});
  }
}

std::vector<BadValue> ValueScan::take() {
  std::ranges::sort(bad_, {}, [](const BadValue& b) { return std::tuple(b.offset, b.rule, b.tensor); });
  return std::move(bad_);
}

}  // namespace weighbridge::slm_format

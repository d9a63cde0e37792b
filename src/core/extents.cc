// SPDX-License-Identifier: Apache-2.0
// The index of a model's parts, and how parts share bytes.
#include "core/extents.h"

#include <numeric>

#include "core/state.h"

namespace weighbridge::core {

Extents Extents::of(const Model& model) {
  std::vector<Range> ranges;
  std::uint32_t item = 0;
  for (std::uint32_t t = 0; t < model.size(); ++t) {
    const Tensor tensor = model[t];
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i, ++item)
      if (const auto extent = tensor.part(i).extent())
        ranges.push_back({extent->source, extent->offset, extent->length, item});
  }
  return Extents(std::move(ranges));
}

std::uint64_t Extents::distinct_bytes() const {
  std::uint64_t total = 0;
  walk([&](const Range& range, Meeting, const Range* widest) {
    const std::uint64_t begin = widest ? std::max(range.offset, widest->end()) : range.offset;
    total += std::max(begin, range.end()) - begin;
  });
  return total;
}

Sharing sharing(const Model& model) {
  Sharing out;
  for (std::uint32_t t = 0; t < model.size(); ++t) out.tensor.insert(out.tensor.end(), model[t].part_count(), t);
  out.first.resize(out.tensor.size());
  std::iota(out.first.begin(), out.first.end(), 0U);
  out.partly.assign(out.tensor.size(), kNone);
  std::uint32_t first = kNone;
  Extents::of(model).walk([&](const Range& range, Meeting meeting, const Range* widest) {
    if (meeting != Meeting::alias) first = range.item;
    out.first[range.item] = first;
    if (meeting == Meeting::overlap) out.partly[range.item] = widest->item;
  });
  return out;
}

bool same_elements(const Part& a, const Part& b) {
  if (a.dtype() != b.dtype() || a.size() != b.size() || a.encoding() != b.encoding() || a.order() != b.order())
    return false;
  return std::ranges::equal(a.strides(), b.strides()) &&
         (a.strides().empty() || std::ranges::equal(a.shape(), b.shape()));
}

}  // namespace weighbridge::core

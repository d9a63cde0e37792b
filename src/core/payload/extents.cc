// SPDX-License-Identifier: Apache-2.0
// The index of a model's parts, and how parts share bytes.
#include "core/payload/extents.h"

#include <numeric>

#include "core/model/state.h"

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
  walk([&](const Range& range, Relation, const Range* furthest) {
    const std::uint64_t begin = furthest ? std::max(range.offset, furthest->end()) : range.offset;
    total += std::max(begin, range.end()) - begin;
  });
  return total;
}

namespace {

// Parts in one blob have the same extent. They share no element, so only the tensor's first part stands for the blob.
bool follows_in_blob(const Tensor& tensor, std::uint32_t part) {
  return part > 0 && cut_of(tensor.part(part)) && tensor.part(part).extent() == tensor.part(0).extent();
}

}  // namespace

Sharing sharing(const Model& model) {
  Sharing out;
  std::vector<std::uint32_t> first_part;  // of each tensor
  for (std::uint32_t t = 0; t < model.size(); ++t) {
    first_part.push_back(static_cast<std::uint32_t>(out.tensor.size()));
    out.tensor.insert(out.tensor.end(), model[t].part_count(), t);
  }
  out.first.resize(out.tensor.size());
  std::iota(out.first.begin(), out.first.end(), 0U);
  out.partly.assign(out.tensor.size(), kNone);
  const auto follows = [&](std::uint32_t item) {
    const std::uint32_t t = out.tensor[item];
    return follows_in_blob(model[t], item - first_part[t]);
  };
  std::uint32_t first = kNone;
  Extents::of(model).walk([&](const Range& range, Relation relation, const Range* furthest) {
    if (relation != Relation::alias) first = range.item;
    if (follows(range.item)) return;
    out.first[range.item] = first;
    if (relation == Relation::overlap) out.partly[range.item] = furthest->item;
  });
  for (std::uint32_t item = 0; item < out.tensor.size(); ++item) {
    if (!follows(item)) continue;
    // The same elements of another tensor that has the same blob.
    const std::uint32_t t = out.tensor[item], other = out.tensor[out.first[first_part[t]]];
    const Part part = model[t].part(item - first_part[t]);
    for (std::uint32_t i = 0; other != t && i < model[other].part_count(); ++i)
      if (same_elements(model[other].part(i), part) && model[other].part(i).extent() == part.extent())
        out.first[item] = first_part[other] + i;
  }
  return out;
}

bool same_elements(const Part& a, const Part& b) {
  if (a.dtype() != b.dtype() || a.size() != b.size() || a.encoding() != b.encoding() || a.order() != b.order())
    return false;
  if (cut_of(a) != cut_of(b)) return false;
  return std::ranges::equal(a.strides(), b.strides()) &&
         (a.strides().empty() || std::ranges::equal(a.shape(), b.shape()));
}

}  // namespace weighbridge::core

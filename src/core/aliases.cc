// SPDX-License-Identifier: Apache-2.0
// Equal extents, found by sorting; and what else must be equal for equal elements.
#include "core/aliases.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace weighbridge::core {

std::vector<std::uint32_t> first_aliases(const Model& model) {
  struct Run {
    std::uint64_t offset, length;
    std::uint32_t source, ordinal;
  };
  std::vector<Run> runs;
  std::vector<std::uint32_t> first;
  for (std::uint32_t t = 0; t < model.size(); ++t) {
    const Tensor tensor = model[t];
    for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
      const auto ordinal = static_cast<std::uint32_t>(first.size());
      first.push_back(ordinal);
      const auto extent = tensor.part(i).extent();
      if (extent && extent->length > 0) runs.push_back({extent->offset, extent->length, extent->source, ordinal});
    }
  }
  const auto key = [](const Run& r) { return std::tie(r.source, r.offset, r.length, r.ordinal); };
  const auto before = [&](const Run& a, const Run& b) { return key(a) < key(b); };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Run &a = runs[i - 1], &b = runs[i];
    if (a.source == b.source && a.offset == b.offset && a.length == b.length) first[b.ordinal] = first[a.ordinal];
  }
  return first;
}

bool same_elements(const Part& a, const Part& b) {
  if (a.dtype() != b.dtype() || a.size() != b.size() || a.encoding() != b.encoding() || a.order() != b.order())
    return false;
  return std::ranges::equal(a.strides(), b.strides()) &&
         (a.strides().empty() || std::ranges::equal(a.shape(), b.shape()));
}

}  // namespace weighbridge::core

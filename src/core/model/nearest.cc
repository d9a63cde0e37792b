// SPDX-License-Identifier: Apache-2.0
// Edit distance over names.
#include "core/model/words.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weighbridge::core {
namespace {

// The edit distance takes the product of both lengths, so longer names are cut or passed over. A name is similar within
// a third of its length, at most kReach edits. Shorter names than kShortest are inside of nearly every name.
constexpr std::size_t kLongest = 256, kReach = 12, kShortest = 3, kMaxNear = 3;

// Edit distance of two names, at most `maximum` + 1, with one row of the usual table.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t maximum) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > maximum) return maximum + 1;
  std::vector<std::size_t> row(a.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t j = 1; j <= b.size(); ++j) {
    std::size_t diagonal = row[0], minimum = j;
    row[0] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[i];
      row[i] = std::min({row[i] + 1, row[i - 1] + 1, replaced});
      minimum = std::min(minimum, row[i]);
    }
    if (minimum > maximum) return maximum + 1;
  }
  return row[a.size()];
}

}  // namespace

std::vector<std::uint32_t> nearest(std::string_view wanted, std::uint32_t count, std::size_t maximum,
                                   const std::function<std::string_view(std::uint32_t)>& name_of) {
  struct Near {
    std::size_t distance;
    std::uint32_t index;
    auto operator<=>(const Near&) const = default;
  };
  std::vector<Near> found;
  if (wanted.size() > kLongest) wanted = wanted.substr(0, kLongest);
  const std::size_t reach = std::min(kReach, std::max<std::size_t>(2, wanted.size() / 3));
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view candidate = name_of(i);
    if (candidate.size() > kLongest) continue;
    const bool inside = wanted.size() >= kShortest && candidate.size() >= kShortest &&
                        (candidate.find(wanted) != candidate.npos || wanted.find(candidate) != wanted.npos);
    const std::size_t distance = inside ? 1 : edit_distance(wanted, candidate, reach);
    if (distance <= reach) found.push_back({distance, i});
  }
  const std::size_t n = std::min(maximum, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n), found.end());
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(found[i].index);
  return out;
}

std::string near_text(std::string_view wanted, std::uint32_t count,
                      const std::function<std::string_view(std::uint32_t)>& name_of) {
  std::string out;
  for (const std::uint32_t i : nearest(wanted, count, kMaxNear, name_of))
    out += (out.empty() ? "; the nearest is " : ", ") + quoted(name_of(i));
  return out;
}

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Orders of a list's indices by a key of each, and the indices whose keys repeat an earlier one's.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace weighbridge::base {

// The numbers below `n`, which is below 2^32, sorted by key(number). Those with equal keys ascend.
template <class Key> std::vector<std::uint32_t> order_by(std::size_t n, Key key) {
  std::vector<std::uint32_t> out(n);
  std::iota(out.begin(), out.end(), 0U);
  std::ranges::stable_sort(out, {}, key);
  return out;
}

// Each number whose key is that of a smaller one, with the smallest of these; ascending.
template <class Key> std::vector<std::pair<std::uint32_t, std::uint32_t>> repeated(std::size_t n, Key key) {
  const std::vector<std::uint32_t> order = order_by(n, key);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
  for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
    if (key(order[i]) != key(order[first]))
      first = i;
    else
      out.emplace_back(order[i], order[first]);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace weighbridge::base

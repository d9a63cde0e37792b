// SPDX-License-Identifier: Apache-2.0
// Duplicate keys of one map, found by sorting: a hostile map cannot make the search quadratic.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace weighbridge::wire {

struct Key {
  std::string_view text;
  std::size_t at = 0;  // its offset; ascending in a list of keys
};

// The smallest `at` of a key that repeats an earlier one. Sorts the list unless it is short.
inline std::optional<std::size_t> first_duplicate(std::vector<Key>& keys) {
  constexpr std::size_t kShort = 12;
  if (keys.size() < 2) return std::nullopt;
  if (keys.size() <= kShort) {
    for (std::size_t i = 1; i < keys.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (keys[i].text == keys[j].text) return keys[i].at;
    return std::nullopt;
  }
  std::sort(keys.begin(), keys.end(),
            [](const Key& a, const Key& b) { return a.text != b.text ? a.text < b.text : a.at < b.at; });
  std::optional<std::size_t> first;
  for (std::size_t i = 1; i < keys.size(); ++i)
    if (keys[i].text == keys[i - 1].text && (!first || keys[i].at < *first)) first = keys[i].at;
  return first;
}

}  // namespace weighbridge::wire

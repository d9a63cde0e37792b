// SPDX-License-Identifier: Apache-2.0
// Edit distance over short words.
#include "nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace weighbridge::cli {
namespace {

constexpr std::size_t kLongest = 64;  // nothing longer is a misspelt verb or flag

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words) {
  if (typed.empty() || typed.size() > kLongest) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, typed.size() / 3) + 1;
  for (const std::string_view word : words) {
    const std::size_t d = word.starts_with(typed) ? 1 : distance(typed, word);
    if (d < least && d < word.size()) {
      least = d;
      best = word;
    }
  }
  return best;
}

}  // namespace weighbridge::cli

// SPDX-License-Identifier: Apache-2.0
// The items of a plan as text for comparisons, and options that allow all losses.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"

namespace weighbridge::test {

// "subject: from -> to", one item per line.
inline std::string text_of(const std::vector<Item>& items) {
  std::string out;
  for (const Item& item : items) out += item.subject + ": " + item.from + " -> " + item.to + "\n";
  return out;
}

inline bool names(const std::vector<Item>& items, std::string_view subject) {
  return std::ranges::any_of(items, [&](const Item& item) { return item.subject == subject; });
}

inline std::vector<LossKind> every_loss() {
  std::vector<LossKind> out;
  for (std::size_t i = 0; i < kLossKindCount; ++i) out.push_back(static_cast<LossKind>(i));
  return out;
}

}  // namespace weighbridge::test

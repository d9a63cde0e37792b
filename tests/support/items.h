// SPDX-License-Identifier: Apache-2.0
// What a plan lists, as a text that a test compares, and the consent to all of it.
#pragma once
#include <string>
#include <vector>

#include "weighbridge/convert.h"

namespace weighbridge::test {

// "subject: from -> to", an item a line.
inline std::string text_of(const std::vector<Item>& items) {
  std::string out;
  for (const Item& item : items) out += item.subject + ": " + item.from + " -> " + item.to + "\n";
  return out;
}

inline std::vector<LossKind> every_loss() {
  std::vector<LossKind> out;
  for (std::size_t i = 0; i < kLossKindCount; ++i) out.push_back(static_cast<LossKind>(i));
  return out;
}

}  // namespace weighbridge::test

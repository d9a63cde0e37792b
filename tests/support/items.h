// SPDX-License-Identifier: Apache-2.0
// What a plan lists, as a text that a test compares.
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

}  // namespace weighbridge::test

// SPDX-License-Identifier: Apache-2.0
// Shortens the texts of a column so that different texts stay different, and orders names as people count.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weighbridge::cli {

// Shortens texts, already escaped, to a width in columns of at least 12.
class Cuts {
 public:
  // `texts` are those of the column; equal ones may repeat.
  Cuts(const std::vector<std::string>& texts, std::size_t columns);
  // The text as shown: whole if it fits, else without its middle, "encoder...0...query.weight", so that what tells it
  // from others of the column stays, else abbreviated word by word, "enc.lay.0.att". Never wider than the column: texts
  // that neither tells apart look alike.
  std::string_view operator()(const std::string& text) const;

 private:
  std::unordered_map<std::string, std::string> cut_;
};

// Whether `a` comes before `b`: like bytes, but numbers within them by value, "layer.2" before "layer.10".
bool comes_before(std::string_view a, std::string_view b) noexcept;

}  // namespace weighbridge::cli

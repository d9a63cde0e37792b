// SPDX-License-Identifier: Apache-2.0
// Tensors of layers that are alike as one: names that differ only in numbers, with the same dtype, shape and layout.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "output.h"
#include "weighbridge/model.h"

namespace weighbridge::cli {

// The type as tables show it: that of the elements, or of the codes that they are computed from.
std::string_view type_text(const Tensor&) noexcept;
// Logical bytes of all parts, or of those that the values are computed from.
std::uint64_t logical_size(const Tensor&);

struct NameGroup {
  std::vector<std::string> path;       // the components of the name, numbers as {0..5}; not escaped
  std::string between;                 // the separators between them: . or /
  std::vector<std::uint32_t> tensors;  // at least one
  std::uint64_t size = 0;              // logical bytes of all

  std::string name() const;
};
// In the order of the first tensor of each.
std::vector<NameGroup> group(const Model&, std::span<const std::uint32_t> tensors);

// Prints the hierarchy of the names, with the number and the bytes of the tensors beneath each.
void print_tree(Output&, const Model&, const std::vector<NameGroup>&);

}  // namespace weighbridge::cli

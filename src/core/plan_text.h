// SPDX-License-Identifier: Apache-2.0
// The subjects of plan items: tensors["w"].parts["data"], attributes["k"].
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "weighbridge/model.h"

namespace weighbridge::core {

// Item::from if the source has nothing of the kind.
inline constexpr char kAbsent[] = "absent";

inline std::string indexed(std::string_view what, std::string_view key) {
  return std::string(what) + "[\"" + std::string(key) + "\"]";
}
inline std::string subject(const Tensor& tensor) { return indexed("tensors", tensor.name()); }
inline std::string subject(const Tensor& tensor, const Part& part) {
  return subject(tensor) + "." + indexed("parts", part.role());
}

// Whether this attribute of the tensor describes how its blocks are packed, so that it is dropped with the layout. The
// attribute `type` may name any type of that layout.
inline bool is_packing_attribute(const Tensor& tensor, std::string_view key) noexcept {
  if (!is_quantized(tensor.layout())) return false;
  if (key == "type") return true;
  for (const BlockTypeInfo& row : all_block_types())
    if (row.layout == tensor.layout() && std::ranges::find(row.parameters, key) != row.parameters.end()) return true;
  return false;
}

}  // namespace weighbridge::core

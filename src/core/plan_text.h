// SPDX-License-Identifier: Apache-2.0
// How an Item of a plan names what it speaks of: tensors["w"].parts["data"], attributes["k"].
#pragma once
#include <string>
#include <string_view>

#include "weighbridge/model.h"

namespace weighbridge::core {

// What stands at an Item's `from` where the source has nothing of the kind.
inline constexpr char kAbsent[] = "absent";

inline std::string indexed(std::string_view what, std::string_view key) {
  return std::string(what) + "[\"" + std::string(key) + "\"]";
}
inline std::string subject(const Tensor& tensor) { return indexed("tensors", tensor.name()); }
inline std::string subject(const Tensor& tensor, const Part& part) {
  return subject(tensor) + "." + indexed("parts", part.role());
}

// Attributes that say how a quantized tensor is packed: where it is made dense they go with its layout.
constexpr bool is_packing_attribute(std::string_view key) noexcept {
  return key == "bits" || key == "group_size" || key == "packing" || key == "type" || key == "block_size";
}
constexpr bool is_quantized(Layout layout) noexcept {
  return layout == Layout::quantized_group || layout == Layout::quantized_row || layout == Layout::quantized_block;
}

}  // namespace weighbridge::core

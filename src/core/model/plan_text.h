// SPDX-License-Identifier: Apache-2.0
// The subjects of plan items: tensors["w"].parts["data"], attributes["k"].
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "core/model/words.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

// Item::from where the source has no such thing.
inline constexpr char kAbsent[] = "absent";

// How items call one of core::folder_files().
inline constexpr const char* kFolderFile = "a file of the folder";
// Shortens long keys, because one tensor can have very many items.
inline std::string indexed(std::string_view what, std::string_view key) {
  constexpr std::size_t kMaxKeyShown = 1024;
  return std::string(what) + "[\"" + excerpt(key, kMaxKeyShown) + "\"]";
}
inline std::string subject(const Tensor& tensor) { return indexed("tensors", tensor.name()); }
inline std::string subject(const Tensor& tensor, const Part& part) {
  return subject(tensor) + "." + indexed("parts", part.role());
}

// Whether this attribute of the tensor describes how its blocks are packed, so that it is dropped with the layout. The
// attribute `type` may name any type of that layout; those that begin with gptq. or awq. say how these packed them.
inline bool is_packing_attribute(const Tensor& tensor, std::string_view key) noexcept {
  if (!is_quantized(tensor.layout())) return false;
  const bool origin = key.starts_with("gptq.") || key.starts_with("awq.");
  if (key == "type" || (tensor.layout() == Layout::quantized_group && origin)) return true;
  for (const BlockTypeInfo& row : all_block_types())
    if (row.layout == tensor.layout() && std::ranges::find(row.parameters, key) != row.parameters.end()) return true;
  return false;
}

}  // namespace weighbridge::core

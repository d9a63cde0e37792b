// SPDX-License-Identifier: Apache-2.0
// Indices of sparse tensors as u64: containers store them in any integer type, which is not part of the content.
#pragma once
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "weighbridge/block_type.h"
#include "weighbridge/dtype.h"

namespace weighbridge::core {

// Whether the part with this role holds indices.
constexpr bool is_index(Layout layout, std::string_view role) noexcept {
  return (layout == Layout::sparse_csr && (role == "indices" || role == "indptr")) ||
         (layout == Layout::sparse_coo && role == "coords");
}

// Throws unless elements of this dtype can be indices.
inline void require_index(DType dtype) {
  const std::uint32_t width = info(dtype).bits / 8;
  if (width == 0 || width > 8)
    base::unsupported("unsupported/index-dtype", "indices must be integers, not " + std::string(name(dtype)));
}

// Whole elements as u64, with their signs.
inline void widen(DType dtype, std::span<const std::byte> in, std::span<std::byte> out) noexcept {
  const std::size_t width = info(dtype).bits / 8;
  const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
  for (std::size_t i = 0, at = 0; at + 8 <= out.size(); ++i, at += 8) {
    const auto element = in.subspan(i * width, width);
    const bool negative = is_signed && (element[width - 1] & std::byte{0x80}) != std::byte{0};
    std::memset(out.data() + at, negative ? 0xff : 0, 8);
    std::memcpy(out.data() + at, element.data(), width);
  }
}

}  // namespace weighbridge::core

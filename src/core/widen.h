// SPDX-License-Identifier: Apache-2.0
// Indices of sparse tensors as u64: containers store them in any integer type, which is not part of the content.
#pragma once
#include <algorithm>
#include <array>
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

// Integers of any width to u64, which `to.update(span)` takes. Pieces may split an element.
template <class To> class Widener {
 public:
  Widener(DType dtype, To& to)
      : width_(info(dtype).bits / 8), is_signed_(info(dtype).kind == DTypeKind::signed_integer), to_(to) {
    if (width_ == 0 || width_ > 8)
      base::unsupported("unsupported/index-dtype", "indices must be integers, not " + std::string(name(dtype)));
  }
  void update(std::span<const std::byte> data) {
    for (const std::byte b : data) {
      element_[filled_++] = b;
      if (filled_ == width_) emit();
    }
    to_.update(std::span(out_).first(out_size_));
    out_size_ = 0;
  }

 private:
  void emit() {
    const bool negative = is_signed_ && (element_[width_ - 1] & std::byte{0x80}) != std::byte{0};
    std::fill(element_.begin() + static_cast<std::ptrdiff_t>(width_), element_.end(),
              negative ? std::byte{0xff} : std::byte{0});
    std::memcpy(out_.data() + out_size_, element_.data(), 8);
    out_size_ += 8;
    filled_ = 0;
    if (out_size_ == out_.size()) {
      to_.update(out_);
      out_size_ = 0;
    }
  }
  std::size_t width_;
  bool is_signed_;
  To& to_;
  std::array<std::byte, 8> element_{};
  std::size_t filled_ = 0;
  std::array<std::byte, 4096> out_{};
  std::size_t out_size_ = 0;
};

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Requests large pages: a table walk for every 4 KiB would cost a stream of weights a tenth of its speed.
#include "runtime/kernels/block.h"

#include <new>

#include "base/os.h"

namespace weighbridge::kernels {
namespace {

constexpr std::size_t kLargePage = std::size_t{1} << 21, kLine = 64;

// From a quarter of a large page on, a whole one pays: faulting in small pages costs microseconds each.
constexpr std::size_t alignment(std::size_t bytes) noexcept { return bytes < kLargePage / 4 ? kLine : kLargePage; }

}  // namespace

void Block::Free::operator()(std::byte* p) const noexcept { ::operator delete(p, std::align_val_t(align)); }

Block::Block(std::size_t bytes) {
  const std::size_t align = alignment(bytes), size = (bytes + align - 1) / align * align;
  data_ = {static_cast<std::byte*>(::operator new(size == 0 ? align : size, std::align_val_t(align))), Free{align}};
  if (align == kLargePage) base::use_large_pages({data_.get(), size});
}

}  // namespace weighbridge::kernels

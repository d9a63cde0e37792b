// SPDX-License-Identifier: Apache-2.0
// Memory for arrays that vector code runs over: aligned, in large pages if the system has them, uninitialized.
#pragma once
#include <cstddef>
#include <memory>

namespace weighbridge::kernels {

class Block {
 public:
  Block() = default;
  explicit Block(std::size_t bytes);  // aligned to at least 64 bytes; pages are allocated on first write
  template <class T> T* as() const noexcept { return reinterpret_cast<T*>(data_.get()); }

 private:
  struct Free {
    std::size_t align;  // of the allocation
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
};

// Lays out several arrays in one Block: add() each, then make().
class BlockPlan {
 public:
  // Adds an array of `bytes` bytes, rounded up to whole cache lines; returns its offset.
  std::size_t add(std::size_t bytes) noexcept {
    const std::size_t at = size_;
    size_ += (bytes + 63) / 64 * 64;
    return at;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  std::size_t size_ = 0;
};

}  // namespace weighbridge::kernels

// SPDX-License-Identifier: Apache-2.0
// XXH3's inner loops, compiled once per instruction set. Debian's static libxxhash lacks the `_dispatch` entry points
// (only the shared library has them), so each xxh3_*.cc inlines the library's header with its own flags from
// CMakeLists.txt.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weighbridge::codecs {

// Functions of one instruction set. The state is libxxhash's XXH3_state_t, whose layout does not depend on the set.
struct Xxh3Kernel {
  struct Result {
    std::uint64_t low, high;
  };
  void* (*create)();  // null if out of memory
  void (*destroy)(void*);
  void (*reset)(void*);
  void (*update)(void*, const void*, std::size_t);
  Result (*digest)(const void*);
  Result (*at_once)(const void*, std::size_t);
  std::uint64_t (*digest64)(const void*);  // of the same state: only this step differs
  std::uint64_t (*at_once64)(const void*, std::size_t);
  const char* name;
};

extern const Xxh3Kernel kXxh3Baseline, kXxh3Avx2, kXxh3Avx512;

// The fastest kernel for this processor.
const Xxh3Kernel& xxh3_kernel() noexcept;

}  // namespace weighbridge::codecs

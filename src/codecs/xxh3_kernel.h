// SPDX-License-Identifier: Apache-2.0
// XXH3's inner loops, compiled once for each instruction set. Debian's static libxxhash lacks the `_dispatch` entry
// points (only its shared library has them), so xxh3_*.cc inline the library's header with the flags that
// CMakeLists.txt gives each of them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weighbridge::codecs {

// Functions of one instruction set. The state is libxxhash's XXH3_state_t, whose layout does not depend on the set.
struct Xxh3Kernel {
  struct Result {
    std::uint64_t low, high;
  };
  void* (*create)();  // null: no memory
  void (*destroy)(void*);
  void (*reset)(void*);
  void (*update)(void*, const void*, std::size_t);
  Result (*digest)(const void*);
  Result (*at_once)(const void*, std::size_t);
  const char* name;
};

extern const Xxh3Kernel kXxh3Baseline, kXxh3Avx2, kXxh3Avx512;

// The quickest that this processor runs.
const Xxh3Kernel& xxh3_kernel() noexcept;

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// XXH3 with the baseline instruction set of the architecture, and the choice among the three.
#define WB_XXH3_KERNEL kXxh3Baseline
#define WB_XXH3_NAME "baseline"
#include "codecs/xxh3_kernel.inc"

namespace weighbridge::codecs {

const Xxh3Kernel& xxh3_kernel() noexcept {
#if defined(__x86_64__)
  static const Xxh3Kernel* const chosen = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return &kXxh3Avx512;
    if (__builtin_cpu_supports("avx2")) return &kXxh3Avx2;
    return &kXxh3Baseline;
  }();
  return *chosen;
#else
  return kXxh3Baseline;
#endif
}

}  // namespace weighbridge::codecs

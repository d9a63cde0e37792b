// SPDX-License-Identifier: Apache-2.0
// XXH3 with the baseline instruction set of the architecture, and the choice among the three.
#define WB_XXH3_KERNEL kXxh3Baseline
#define WB_XXH3_NAME "baseline"
#include "base/cpu.h"
#include "codecs/xxh3_kernel.inc"

namespace weighbridge::codecs {

const Xxh3Kernel& xxh3_kernel() noexcept {
#if defined(__x86_64__)
  static const Xxh3Kernel* const chosen = [] {
    if (base::cpu_has(base::Cpu::avx512f)) return &kXxh3Avx512;
    if (base::cpu_has(base::Cpu::avx2)) return &kXxh3Avx2;
    return &kXxh3Baseline;
  }();
  return *chosen;
#else
  return kXxh3Baseline;
#endif
}

}  // namespace weighbridge::codecs

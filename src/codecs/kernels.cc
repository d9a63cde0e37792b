// SPDX-License-Identifier: Apache-2.0
// Compiles kernels.inc for each instruction set and chooses among them. The compiler vectorizes its plain loops.
#include "codecs/kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/cpu.h"
#include "base/endian.h"
#include "codecs/ggml_tables.h"
#include "codecs/small_float.h"

namespace weighbridge::codecs {
namespace {

namespace plain {
#include "codecs/kernels.inc"
constexpr Kernels kKernels = make_kernels("plain");
}  // namespace plain

#if defined(__x86_64__)
// Code between the two pragmas may use the named instructions. Functions from headers are not affected, and are
// inlined.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
#endif
namespace avx2 {
#include "codecs/kernels.inc"
constexpr Kernels kKernels = make_kernels("avx2");
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl"))), \
                                 apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
#endif
namespace avx512 {
#include "codecs/kernels.inc"
constexpr Kernels kKernels = make_kernels("avx512");
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif  // __x86_64__

struct Choice {
  const Kernels* sets[3] = {&plain::kKernels, nullptr, nullptr};
  std::size_t count = 1;

  Choice() noexcept {
#if defined(__x86_64__)
    using base::Cpu;
    const bool has_avx2 = base::cpu_has(Cpu::avx2, Cpu::bmi, Cpu::bmi2);
    if (has_avx2) sets[count++] = &avx2::kKernels;
    if (has_avx2 && base::cpu_has(Cpu::avx512f, Cpu::avx512bw, Cpu::avx512dq, Cpu::avx512vl))
      sets[count++] = &avx512::kKernels;
#endif
  }
};

const Choice& choice() noexcept {
  static const Choice made;
  return made;
}

}  // namespace

const Kernels& kernels() noexcept { return *choice().sets[choice().count - 1]; }
std::span<const Kernels* const> all_kernels() noexcept { return {choice().sets, choice().count}; }

}  // namespace weighbridge::codecs

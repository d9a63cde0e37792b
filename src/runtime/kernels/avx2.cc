// SPDX-License-Identifier: Apache-2.0
// The kernels for processors with AVX2 and FMA. Only the loops are compiled with these instructions.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/kernels/kernels.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
namespace weighbridge::kernels {
namespace {
#include "runtime/kernels/vector_avx2.inc"

#include "runtime/kernels/rows.inc"

#include "runtime/kernels/prefetch.inc"

#include "runtime/kernels/products.inc"

#include "runtime/kernels/attention.inc"

#include "runtime/kernels/bf16_pairs.inc"

#include "runtime/kernels/generate.inc"

#include "runtime/kernels/fixed.inc"

#include "runtime/kernels/table.inc"
constexpr Kernels kKernels = make_kernels("avx2");
}  // namespace
}  // namespace weighbridge::kernels
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace weighbridge::kernels {
const Kernels* avx2_kernels() noexcept { return &kKernels; }
}  // namespace weighbridge::kernels
#else
namespace weighbridge::kernels {
const Kernels* avx2_kernels() noexcept { return nullptr; }
}  // namespace weighbridge::kernels
#endif

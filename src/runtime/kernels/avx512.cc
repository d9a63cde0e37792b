// SPDX-License-Identifier: Apache-2.0
// The kernels for processors with AVX-512 and VNNI, those of bf16 for processors that have AVX512-BF16 too, and those
// of f16 for AVX512-FP16. Only the loops are compiled with these instructions.
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

#include "runtime/kernels/half.h"
#include "runtime/kernels/kernels.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
                                 apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif
namespace weighbridge::kernels {
namespace {
#include "runtime/kernels/vector_avx512.inc"

#include "runtime/kernels/rows.inc"

#include "runtime/kernels/prefetch.inc"

#include "runtime/kernels/products.inc"

#include "runtime/kernels/attention.inc"

#include "runtime/kernels/bf16_pairs.inc"

#include "runtime/kernels/generate.inc"

#include "runtime/kernels/fixed.inc"

#include "runtime/kernels/table.inc"
constexpr Kernels kKernels = make_kernels("avx512");
}  // namespace
}  // namespace weighbridge::kernels
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(                                                                         \
        __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16"))), \
            apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512bf16")
#endif
namespace weighbridge::kernels {
namespace {
#include "runtime/kernels/bf16_pairs_avx512bf16.inc"
constexpr Kernels kBf16Kernels = [] {
  Kernels out = make_kernels("avx512bf16");
  out.pack_bf16_pairs = pack_bf16_side_by_side;
  out.pair_row = round_row;
  out.bf16_bytes = kBf16SideBytes;
  out.product_bf16_pairs = product_side_by_side;
  return out;
}();
}  // namespace
}  // namespace weighbridge::kernels
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(                                                                         \
        __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512fp16"))), \
            apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512fp16")
#endif
namespace weighbridge::kernels {
namespace {
#include "runtime/kernels/half_avx512fp16.inc"
constexpr HalfKernels kHalfKernels{pack_half, halve_row, product_half};
}  // namespace
}  // namespace weighbridge::kernels
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#pragma GCC pop_options
#endif

namespace weighbridge::kernels {
const Kernels* avx512_kernels() noexcept { return &kKernels; }
const Kernels* avx512bf16_kernels() noexcept { return sums_in_order() ? &kBf16Kernels : nullptr; }
const HalfKernels* avx512fp16_kernels() noexcept { return &kHalfKernels; }
}  // namespace weighbridge::kernels
#else
namespace weighbridge::kernels {
const Kernels* avx512_kernels() noexcept { return nullptr; }
const Kernels* avx512bf16_kernels() noexcept { return nullptr; }
const HalfKernels* avx512fp16_kernels() noexcept { return nullptr; }
}  // namespace weighbridge::kernels
#endif

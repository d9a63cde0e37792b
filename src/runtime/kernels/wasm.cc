// SPDX-License-Identifier: Apache-2.0
// The kernels for WebAssembly with SIMD; empty elsewhere.
#if defined(__wasm_simd128__)
#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "codecs/small_float.h"
#include "runtime/kernels/kernels.h"

namespace weighbridge::kernels {
namespace {
#include "runtime/kernels/vector_wasm.inc"

#include "runtime/kernels/rows.inc"

#include "runtime/kernels/prefetch.inc"

#include "runtime/kernels/products.inc"

#include "runtime/kernels/attention.inc"

#include "runtime/kernels/bf16_pairs.inc"

#include "runtime/kernels/generate.inc"

#include "runtime/kernels/fixed.inc"

#include "runtime/kernels/table.inc"
constexpr Kernels kKernels = make_kernels("wasm");
}  // namespace

const Kernels* wasm_kernels() noexcept { return &kKernels; }
}  // namespace weighbridge::kernels
#endif

// SPDX-License-Identifier: Apache-2.0
// Products with multiplications and sums in f16, for processors with AVX512-FP16. Owns what they compute and in which
// order; kernels.h has the rest, and product_f16, which needs no f16 arithmetic: only its weights are f16.
//
// SAME BITS  An element depends on neither the other rows nor how the work is shared. Only processors with this
//            arithmetic give these bits.
// SCALES     Each row of activations and of weights is multiplied by a power of two that brings its largest
//            magnitude to [8, 16), then rounded to f16. No outlier, however large, overflows; values of 2^-18 of it
//            or less begin to lose bits.
// ORDER      The sum of an element starts at 0 in f32. Sums of kHalfChain products each are added to it in order of k;
//            each of these is a chain of fused multiply-adds in f16 that starts at 0. The result is
//            fma(sum, scale of the weights * scale of the activations, bias).
// WEIGHTS    Panels like those of kernels.h but of 96 columns; the last one has the rest, rounded up to 32.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/kernels/kernels.h"

namespace weighbridge::kernels {

inline constexpr std::size_t kHalfLanes = 32, kHalfPanel = 96, kHalfChain = 64;

constexpr std::size_t half_panel_count(std::size_t n) noexcept { return (n + kHalfPanel - 1) / kHalfPanel; }
constexpr std::size_t half_panel_width(std::size_t n, std::size_t panel) noexcept {
  return round_up(n - panel * kHalfPanel < kHalfPanel ? n - panel * kHalfPanel : kHalfPanel, kHalfLanes);
}
// Number of elements of a packed [n, k].
constexpr std::size_t half_packed_size(std::size_t n, std::size_t k) noexcept { return round_up(n, kHalfLanes) * k; }

// a[i][j] means value * a_scale[i]; w[n][k] means value * w_scale[n].
struct ProductHalf : Product {
  const std::uint32_t* a;  // each value in both halves: copying 32 bits to all lanes is free, 16 is not
  std::size_t a_stride;
  const float* a_scale;
  const std::uint16_t* w;
  const float* w_scale;  // padded to 16
};

struct HalfKernels {
  void (*pack)(const float* w, std::size_t n, std::size_t k, std::uint16_t* out, float* scale);
  void (*halve_row)(const float* x, std::size_t n, std::uint32_t* halves, float& scale);
  void (*product)(const ProductHalf&, const Range&);  // a range of panels of 96
};

// Null if this processor has no f16 arithmetic.
const HalfKernels* half_kernels() noexcept;

// The table itself, for kernels.cc; null if it is not compiled in.
const HalfKernels* avx512fp16_kernels() noexcept;

}  // namespace weighbridge::kernels

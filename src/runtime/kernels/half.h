// SPDX-License-Identifier: Apache-2.0
// Products whose multiplications and sums are f16, for processors with AVX512-FP16. Owns what they compute and in which
// order; kernels.h has the rest, and product_f16, which any processor runs, with weights of f16 alone.
//
// SAME BITS  An element depends on neither the other rows nor how the work is shared out. No other processor gives
// these
//            bits: nothing computes them there.
// SCALES     A row of activations and a row of weights are multiplied by a power of two that brings their largest
//            magnitude to [8, 16), then rounded to f16. Nothing overflows, however large an outlier is; what is 2^-18
//            of it or less begins to lose bits.
// ORDER      An element's sum starts at 0 in f32. To it are added, in order of k, the sums of kHalfChain products each,
//            which are chains of fused multiply-adds in f16 that start at 0. It becomes fma(sum, scale of the
//            weights * scale of the activations, bias).
// WEIGHTS    Panels like those of kernels.h, of 96 columns, the last one of what is left rounded up to 32.
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
// Elements of a packed [n, k].
constexpr std::size_t half_packed_size(std::size_t n, std::size_t k) noexcept { return round_up(n, kHalfLanes) * k; }

// a[i][j] stands for value * a_scale[i], w[n][k] for value * w_scale[n].
struct ProductHalf : Product {
  const std::uint32_t* a;  // each value in both halves: 32 bits cost nothing to copy to all lanes, 16 do
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

// Null where this processor has no arithmetic in f16.
const HalfKernels* half_kernels() noexcept;

// The table itself, for kernels.cc; null where it is not compiled in.
const HalfKernels* avx512fp16_kernels() noexcept;

}  // namespace weighbridge::kernels

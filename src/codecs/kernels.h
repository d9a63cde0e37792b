// SPDX-License-Identifier: Apache-2.0
// The inner loops of casts, statistics and dequantization, compiled for several instruction sets and chosen at run time
// (kernels.cc), because Debian has no static libhwy. All sets give the same bits, and tests compare them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/ggml.h"
#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

// Sums over a block of real numbers. min, max and sum cover the finite elements; `rest` is the rounding error of `sum`.
struct RealSums {
  double min, max, sum, rest;
  std::uint64_t finite, nan, infinite, zero;
};

// How the results of a cast differ from its values. `largest` covers finite values that did not overflow.
struct Differences {
  std::uint64_t overflowed, flushed;
  double largest;
};

struct Kernels {
  const char* name;
  // f32 from `n` codes (f16, bf16, f8, or one f6 or f4 code per byte) or f32, at any alignment; null for other dtypes.
  void (*to_f32[kDTypeCount])(const std::byte* from, float* to, std::size_t n);
  // The same dtypes from f32, rounded to nearest even.
  void (*from_f32[kDTypeCount])(const float* from, std::byte* to, std::size_t n);
  // i64 from booleans (nonzero is 1) and integers; u64 keeps its bits.
  void (*to_i64[kDTypeCount])(const std::byte* from, std::int64_t* to, std::size_t n);
  // Booleans and integers from the low bits of i64.
  void (*from_i64[kDTypeCount])(const std::int64_t* from, std::byte* to, std::size_t n);
  void (*f64_to_odd_f32)(const double* from, float* to, std::size_t n);
  // At most 65,536 elements per call.
  void (*sum_f32)(const float* from, std::size_t n, RealSums& out);
  void (*sum_f64)(const double* from, std::size_t n, RealSums& out);
  // Values with the results of their cast, widened again. Magnitudes from `saturates_at` on count as overflowed (NaN:
  // none does). At most 65,536 elements per call.
  void (*compare_f32)(const float* from, const float* result, std::size_t n, float saturates_at, Differences& out);
  void (*compare_f64)(const double* from, const float* result, std::size_t n, float saturates_at, Differences& out);
  // out[i] = (field - zeros[i]) * scales[i], where field is the bits of word i at `shift`, masked; indexed by log2 of
  // the word's size in bytes.
  void (*dequantize[4])(const std::byte* words, unsigned shift, std::uint64_t mask, const double* zeros,
                        const double* scales, float* out, std::size_t n);
  // Whole blocks of each of GGML's types.
  void (*ggml[kGgmlCount])(const std::uint8_t* from, float* to, std::size_t blocks);
};

// The fastest set for this processor.
const Kernels& kernels() noexcept;
// Every set that this processor supports, the plain one first. For tests.
std::span<const Kernels* const> all_kernels() noexcept;

}  // namespace weighbridge::codecs

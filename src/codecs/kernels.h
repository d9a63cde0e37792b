// SPDX-License-Identifier: Apache-2.0
// The inner loops of casts, statistics, comparisons, quantization both ways and merging, compiled for several
// instruction sets and chosen at run time (kernels.cc), because Debian has no static libhwy. All sets give the same
// bits, and tests compare them.
#pragma once
#include <array>
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

// Sums over the pairs of a block: x of one side, y of the other, d = y - x. Only where all are finite: `xx` and `yy`
// are not, where a side has a NaN, an infinity, or numbers whose squares overflow.
struct PairSums {
  double xx, yy, dd, xy;
  double max_abs;         // of d
  double max_rel;         // of d / x, where x is not zero; at most PairTerms::ratio if it is no larger
  std::uint64_t changed;  // x != y
  std::uint64_t beyond;   // |d| > atol + rtol * |y|; `changed` if both are zero
};

// What is asked of pairs: a tolerance, and the largest ratio of those before.
struct PairTerms {
  double atol = 0, rtol = 0, ratio = 0;
};

// A block of a matrix, row-major, and the factors of what is added to it: left [rows, rank], right [rank, columns].
// Strides are in elements from row to row.
struct LowRank {
  const double* left = nullptr;
  const double* right = nullptr;
  double* values = nullptr;
  std::size_t left_stride = 0, right_stride = 0, stride = 0;
  std::size_t rows = 0, columns = 0, rank = 0;
  double scale = 1;
};

// Of finite values, for the types that have an encoder (ggml_encodes()); null for the others. With an importance, the
// blocks are a row.
using GgmlEncoders =
    std::array<void (*)(const float* from, const GgmlTerms& terms, std::byte* to, std::size_t blocks), kGgmlCount>;

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
  // At most 65,536 pairs per call.
  void (*pair_f32)(const float* x, const float* y, std::size_t n, const PairTerms&, PairSums& out);
  void (*pair_f64)(const double* x, const double* y, std::size_t n, const PairTerms&, PairSums& out);
  // Without a tolerance, for values of at most 12 significant bits: f16, bf16 and smaller. d is rounded to f32, and
  // sums of squares are within 18 * 2^-24 of their value if they are at least 2^-80; `xy` is what they leave of it.
  // bf16 is read as it is stored, on processors that store the low byte first.
  void (*pair_narrow)(const float* x, const float* y, std::size_t n, double ratio, PairSums& out);
  void (*pair_bf16)(const std::byte* x, const std::byte* y, std::size_t n, double ratio, PairSums& out);
  // PairSums::xx of the same elements, bit for bit; not finite where that is not. At most 65,536 elements per call.
  double (*squares_f32)(const float* from, std::size_t n);
  double (*squares_f64)(const double* from, std::size_t n);
  // values[i][c] += scale * (left[i][0] * right[0][c] + left[i][1] * right[1][c] + ...): each product and each sum
  // rounded, from 0 on, in ascending order, whatever the block.
  void (*add_low_rank)(const LowRank& block);
  // out[i] = (field - zeros[i]) * scales[i], where field is the bits of word i at `shift`, masked; indexed by log2 of
  // the word's size in bytes.
  void (*dequantize[4])(const std::byte* words, unsigned shift, std::uint64_t mask, const double* zeros,
                        const double* scales, float* out, std::size_t n);
  // Whole blocks of each of GGML's types.
  void (*ggml[kGgmlCount])(const std::uint8_t* from, float* to, std::size_t blocks);
  GgmlEncoders ggml_encode;
  // Of codecs/quantize.h: the largest magnitude as its bits; codes of n bytes.
  std::uint32_t (*largest_bits)(const float* from, std::size_t n);
  void (*q8_encode)(const float* from, float scale, std::byte* to, std::size_t n);
  void (*q8_decode)(const std::byte* from, float scale, float* to, std::size_t n);
  void (*q4_encode)(const float* from, float scale, std::byte* to, std::size_t n);
  void (*q4_decode)(const std::byte* from, float scale, float* to, std::size_t n);
  // Of quantized folders, with one byte for each code. From nibbles, the low ones first [0] or the high ones [1].
  void (*unpack_nibbles[2])(const std::byte* from, std::byte* codes, std::size_t n);
  // codes[i] = the bits of word i at `shift`, masked; of words of 8 [0] or 32 bits [2].
  void (*unpack_fields[3])(const std::byte* words, unsigned shift, unsigned mask, std::byte* codes, std::size_t n);
  // Of words of 32 bits; steps are in bytes from row to row.
  void (*transpose_words)(const std::byte* from, std::size_t from_step, std::size_t rows, std::size_t columns,
                          std::byte* to, std::size_t to_step);
  // v[i] - each[(i + skip) / run], and likewise.
  void (*subtract_runs)(float* v, const float* each, std::size_t skip, std::size_t run, std::size_t n);
  void (*multiply_runs)(float* v, const float* each, std::size_t skip, std::size_t run, std::size_t n);
  void (*add_runs)(float* v, const float* each, std::size_t skip, std::size_t run, std::size_t n);
  // (code ^ flip) - subtracted, exact.
  void (*integer_values)(const std::byte* codes, unsigned flip, float subtracted, float* to, std::size_t n);
  // to[i] = tables[(i + skip) / run][codes[i]], tables of 16 u16 [0] or f32 [1].
  void (*look_up[2])(const std::byte* codes, const void* tables, std::size_t skip, std::size_t run, std::byte* to,
                     std::size_t n);
  // (values[codes[i]] - zeros[(i + skip) / run]) * scales[(i + skip) / run] as f16 [0] or bf16 [1], of 16 values; zeros
  // may be null. Codes are bytes [][0], or nibbles, the low ones first [][1] or the high ones [][2], or the low
  // [][3] or high [][4] ones of each fourth byte: null where it is faster to unpack them. Reads up to 3 bytes past
  // those.
  void (*scale_few[2][5])(const std::byte* codes, const float* values, const float* zeros, const float* scales,
                          std::size_t skip, std::size_t run, std::byte* to, std::size_t n);
  // values[codes[i]] * scales[(i + skip) / run] as bf16, of 256 values that bf16 has. Null: the loops above are as
  // fast.
  void (*scale_many)(const std::byte* codes, const float* values, const float* scales, std::size_t skip,
                     std::size_t run, std::byte* to, std::size_t n);
};

// The fastest set for this processor.
const Kernels& kernels() noexcept;
// Every set that this processor supports, the plain one first. For tests.
std::span<const Kernels* const> all_kernels() noexcept;

// The encoders with products and sums contracted as in builds of GGML for processors with FMA (ggml_search.inc): the
// fastest, and all. Any processor gives their bits; one without FMA takes its time.
const GgmlEncoders& contracted_encoders() noexcept;
std::span<const GgmlEncoders* const> all_contracted_encoders() noexcept;

// Elements of a block that stays in the L1 cache with its wide forms. A multiple of 4: blocks of packed types begin on
// whole bytes.
inline constexpr std::size_t kBlock = 2048;
// The first n elements, at most kBlock, widened by the fastest set, packed ones too: f32 from reals other than f64; i64
// from booleans and integers (u64 keeps its bits); the nearest f64 from any of these and f64.
void load_f32(DType from, const std::byte* in, float* to, std::size_t n) noexcept;
void load_i64(DType from, const std::byte* in, std::int64_t* to, std::size_t n) noexcept;
void load_f64(DType from, const std::byte* in, double* to, std::size_t n) noexcept;

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// The numeric kernels of the runtimes, compiled for several instruction sets and chosen at run time. Owns what each
// computes and in which order; leaves models, memory and threads to its callers (team.h has threads).
//
// SAME BITS  All sets of a build give the same bits. An element of a product is one chain of fused multiply-adds over k
//            in ascending order, so it depends on neither the other rows nor how the work is shared. With quantized
//            weights it is an exact sum of integers, or one for each block, added in ascending order. A sum over a
//            row is 16 partial sums (element i goes to i mod 16), added as one tree: 8 apart, 4, 2, 1. exp, erf and
//            the like are polynomials of this file's own, evaluated alike everywhere, never the C library's functions.
// WEIGHTS    A matrix [n, k], row-major, is packed once into panels of 48 columns of its transpose. Panel j begins at
//            element j * 48 * k and holds [k][width] with width = 48; the last one has the rest, rounded up to 16
//            (filled with zeros). Vectors then run over output columns.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weighbridge::kernels {

inline constexpr std::size_t kLanes = 16, kPanel = 48, kTileRows = 8;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::size_t panel_count(std::size_t n) noexcept { return (n + kPanel - 1) / kPanel; }
constexpr std::size_t panel_width(std::size_t n, std::size_t panel) noexcept {
  return round_up(n - panel * kPanel < kPanel ? n - panel * kPanel : kPanel, kLanes);
}
// Number of elements of a packed [n, k].
constexpr std::size_t packed_size(std::size_t n, std::size_t k) noexcept { return round_up(n, kLanes) * k; }
// int8 products take k four at a time.
constexpr std::size_t int8_depth(std::size_t k) noexcept { return round_up(k, 4); }

// The function applied to a product before it is stored. gelu is x * Phi(x) with the error function, gelu_tanh its tanh
// form.
enum class Activation : std::uint8_t { none, gelu, gelu_tanh };

// The rows of the activations and the panels of the weights that one call computes.
struct Range {
  std::size_t row_begin, row_end, panel_begin, panel_end;
};

// What suits weights that are in memory, and in the third-level cache.
inline constexpr std::size_t kAheadInMemory = std::size_t{96} << 10, kAheadInCache = std::size_t{10} << 10;

// c = activation(bias + a * w^T) + residual: a [m, k], w packed [n, k], bias [n] padded to 16, c and residual [m, n].
// residual may be null, and may be c. `after`: weights that the caller needs next; they are only prefetched while the
// last panel is computed. `ahead`: how many bytes a row alone prefetches while it computes with as many.
struct Product {
  std::size_t n, k;
  const float* bias;
  Activation activation;
  const float* residual;
  std::size_t residual_stride;
  float* c;
  std::size_t c_stride;
  const void* after = nullptr;
  std::size_t ahead = kAheadInMemory;
};
struct ProductF32 : Product {
  const float* a;
  std::size_t a_stride;
  const float* w;
};
// The same with f16 weights, which are widened to f32 when used: sums are in f32.
struct ProductF16 : Product {
  const float* a;
  std::size_t a_stride;
  const std::uint16_t* w;
};
// The same with bf16 weights.
struct Bf16 {
  std::uint16_t bits;
};
struct ProductBf16 : Product {
  const float* a;
  std::size_t a_stride;
  const Bf16* w;
};
// The same with both in bf16, which is how AVX512-BF16 multiplies: two elements of k at a time.
//
// SCALES  Each row of activations and of weights is multiplied by a power of two that brings its largest magnitude to
//         [8, 16). What is then below 2^-56 becomes 0, and the rest is rounded to bf16. So every product and every sum
//         is a multiple of 2^-126, none is subnormal, and it makes no difference that the instruction takes those for
//         0.
// ORDER   The sum of an element starts at 0 in f32. Of each pair of k, the second product is added to it, then the
//         first. The result is fma(sum, scale of the weights * scale of the activations, bias).
struct ProductBf16Pairs : Product {
  const void* a;         // rows one after the other, filled by pair_row() of the same set
  const float* a_scale;  // of each row
  const Bf16* w;         // packed by pack_bf16_pairs() of the same set
  const float* w_scale;  // padded to 16
};
constexpr std::size_t bf16_depth(std::size_t k) noexcept { return round_up(k, 2); }

// What the codes of a row of activations mean: element j is (code[j] - zero) * scale, the one at `apart` is
// outlier * scale more. A few activations of a trained model are many times larger than all others: a range that held
// them would leave the others few codes.
struct CodedRow {
  float scale = 1.0F;
  std::int32_t zero = 0;
  std::uint32_t apart = 0;
  float outlier = 0.0F;
};
// w[n][k] means code * w_scale[n]; w_sum[n] is the sum of the codes of row n.
struct ProductI8 : Product {
  const std::uint8_t* a;
  std::size_t a_stride;  // a multiple of 4; codes past k are multiplied by zero
  const CodedRow* rows;  // of a
  const std::int8_t* w;
  const float* w_scale;       // padded to 16
  const std::int32_t* w_sum;  // padded to 16
};

// One head of one sequence: out[i] = softmax(scale * q[i] * k^T) * v. Rows are `stride` apart and `head` wide.
struct Attention {
  const float *q, *k, *v;
  std::size_t stride, length, head;
  float scale;
  float* out;
  std::size_t out_stride;
  float* scratch;  // attention_scratch(length, head) floats, 64-byte aligned
};
constexpr std::size_t attention_scratch(std::size_t length, std::size_t head) noexcept {
  return round_up(length, kLanes) * (head + round_up(head, kLanes) + kTileRows);
}

// 4-bit weights with one scale for each kBlock of k: a means code * scale of its block, w means (code - 8) * scale of
// its block. k is a multiple of kBlock. For each block, then each vector, a panel of w holds 16 scales and 4 x 64 bytes
// of codes: byte [e][4 c + t] has k = 8 e + t of column c in its low half, k = 8 e + 4 + t in the high half. Rows of a
// come in groups of kTileRows, or a single row alone. For each block a group holds the codes of its rows, their scales,
// and -8 times the sums of their codes.
inline constexpr std::size_t kBlock = 32, kQ4Bytes = kLanes * sizeof(float) + kLanes * kBlock / 2;
inline constexpr std::size_t kQ4RowBytes = kBlock + sizeof(float) + sizeof(std::int32_t);
constexpr std::size_t packed_q4_size(std::size_t n, std::size_t k) noexcept {
  return round_up(n, kLanes) / kLanes * (k / kBlock) * kQ4Bytes;
}
constexpr std::size_t q4_group(std::size_t rows) noexcept { return rows == 1 ? 1 : kTileRows; }
constexpr std::size_t q4_rows_size(std::size_t rows, std::size_t k) noexcept {
  return round_up(rows, q4_group(rows)) * (k / kBlock) * kQ4RowBytes;
}
// Size in bytes of a panel whose codes were widened to bytes.
inline constexpr std::size_t kQ4WideBytes = kLanes * sizeof(float) + kLanes * kBlock;
constexpr std::size_t q4_wide_size(std::size_t k) noexcept { return kPanel / kLanes * (k / kBlock) * kQ4WideBytes; }
struct ProductQ4 : Product {
  const std::byte* a;  // q4_rows_size(rows, k) bytes, filled by quantize_blocks()
  std::size_t group;   // q4_group(rows)
  const std::uint8_t* w;
  std::uint8_t* wide;  // q4_wide_size(k) bytes of scratch; not needed for one row
};

// 8-bit weights with one scale for each kBlock of k, otherwise as ProductQ4, with the same activations: w means code *
// scale of its block. For each block, then each vector, a panel of w holds 16 scales and 8 x 64 bytes of codes: byte
// [f][4 c + t] has k = 4 f + t of column c.
inline constexpr std::size_t kQ8Bytes = kLanes * sizeof(float) + kLanes * kBlock;
constexpr std::size_t packed_q8_size(std::size_t n, std::size_t k) noexcept {
  return round_up(n, kLanes) / kLanes * (k / kBlock) * kQ8Bytes;
}
struct ProductQ8Blocks : Product {
  const std::byte* a;  // as ProductQ4
  std::size_t group;
  const std::uint8_t* w;
};

// Products of f32 activations with quantized weights, without rounding the activations to few bits. A row becomes fixed
// point: x[i] is X[i] * unit, unit a power of two, |X| < 2^29. So an element at least 1/32 of the row's largest is
// exact, and every other is within 2^-29 of the largest: less than what a sum in f32 rounds. X is L + 2^15 H, and both
// are multiplied with the codes of the weights, exactly: as words of 16 bits, or, where an instruction multiplies
// bytes, as two digits each. All give the same integers, and so the same bits. Rows give the same bits alone and among
// others. A row with an infinity or a NaN has the unit NaN, and so gives NaN.
struct ProductFixedQ8 : Product {
  const std::byte* a;         // rows of fixed_q8_size(k) bytes, filled by fix_row_q8() of the same set
  std::size_t a_stride;       // in bytes
  const float* unit;          // of each row
  const std::int8_t* w;       // packed as for product_i8; k is at most 65,536
  const float* w_scale;       // padded to 16
  const std::int32_t* w_sum;  // padded to 16
};
constexpr std::size_t fixed_q8_size(std::size_t k) noexcept { return 4 * int8_depth(k); }
// k is a multiple of kBlock. For each block a row holds the digits, and -8 times the sums of L and of H.
inline constexpr std::size_t kFixedQ4Bytes = 4 * kBlock + 2 * sizeof(std::int32_t);
constexpr std::size_t fixed_q4_size(std::size_t k) noexcept { return k / kBlock * kFixedQ4Bytes; }
struct ProductFixedQ4 : Product {
  const std::byte* a;  // rows of fixed_q4_size(k) bytes, one after the other, filled by fix_row_q4() of the same set
  const float* unit;   // of each row
  const std::uint8_t* w;
  std::uint8_t* wide;  // q4_wide_size(k) bytes of scratch; not needed for one row
};
// 8-bit weights in blocks, times rows in the form of ProductFixedQ4. The sums of L and of H over a block are exact, and
// each is rounded to f32 once.
struct ProductFixedQ8Blocks : Product {
  const std::byte* a;     // as ProductFixedQ4
  const float* unit;      // of each row
  const std::uint8_t* w;  // packed as for product_q8_blocks
};

// The heads of one sequence that read the same cached keys and values: row r sees the first `first` + r keys. Queries
// and results of the heads are side by side. keys holds panels of 48 positions, [head][48] each; values holds a row of
// `head` for each position, and 16 extra floats after the last. Memory past the last key may hold any numbers.
struct CausalAttention {
  const float* q;
  std::size_t q_stride, rows, first, head, heads;
  float scale;
  const float *keys, *values;
  float* out;
  std::size_t out_stride;
  float* scratch;  // causal_scratch(keys that the last row sees) floats, 64-byte aligned
};
constexpr std::size_t causal_scratch(std::size_t length) noexcept { return kTileRows * round_up(length, kPanel); }

struct Kernels {
  const char* name;
  void (*pack_f32)(const float* w, std::size_t stride, std::size_t n, std::size_t k, float* out);
  void (*product_f32)(const ProductF32&, const Range&);
  void (*product_f16)(const ProductF16&, const Range&);
  void (*product_bf16)(const ProductBf16&, const Range&);
  // Packs a matrix [n, k] for product_bf16_pairs, as packed_size(n, bf16_depth(k)) elements. scale has round_up(n, 16).
  void (*pack_bf16_pairs)(const float* w, std::size_t n, std::size_t k, Bf16* out, float* scale);
  // Rounds one row of activations for it, as bf16_depth(k) elements of bf16_bytes each. Returns its scale.
  float (*pair_row)(const float* x, std::size_t k, void* out);
  std::size_t bf16_bytes;
  void (*product_bf16_pairs)(const ProductBf16Pairs&, const Range&);
  void (*attention)(const Attention&);
  // x[i] = gamma * (x[i] - mean) / sqrt(variance + epsilon) + beta, for each of `rows` rows, in place.
  void (*layer_norm)(float* x, std::size_t rows, std::size_t width, const float* gamma, const float* beta,
                     float epsilon);
  void (*add)(const float* a, const float* b, float* out, std::size_t n);
  bool (*all_finite)(const float* x, std::size_t n);
  // The mean and the maximum of each column over the rows of x [rows, width], rows > 0.
  void (*mean)(const float* x, std::size_t rows, std::size_t width, float* out);
  void (*max)(const float* x, std::size_t rows, std::size_t width, float* out);
  // Divides by the Euclidean norm, or by 1e-12 if that is larger.
  void (*normalize)(float* x, std::size_t n);
  // Quantizes one row by its own range, extended to include zero so that zero is exact; writes n codes, then zeros up
  // to the padding.
  CodedRow (*quantize_row)(const float* x, std::size_t n, std::uint8_t* codes);
  // The same by the range of all elements but one: the largest or the smallest, whichever leaves the smaller range.
  CodedRow (*quantize_row_apart)(const float* x, std::size_t n, std::uint8_t* codes);
  // Quantizes a matrix [n, k] by the largest magnitude of each row and packs it for product_i8: panels of [k /
  // 4][width][4]. scale and sum have round_up(n, 16) elements.
  void (*pack_i8)(const float* w, std::size_t n, std::size_t k, std::int8_t* out, float* scale, std::int32_t* sum);
  void (*product_i8)(const ProductI8&, const Range&);

  // gate[i] = silu(gate[i]) * up[i], silu(x) = x / (1 + exp(-x)).
  void (*silu_product)(float* gate, const float* up, std::size_t n);
  // out[i] = x[i] / sqrt(mean of squares + epsilon) * weight[i].
  void (*rms_norm)(const float* x, std::size_t width, const float* weight, float epsilon, float* out);
  // Rotates each pair (x[2i], x[2i + 1]) by an angle: x[i] = x[i] * cosines[i] + x[i ^ 1] * sines[i]. Both elements of
  // a pair have its cosine; the first has -sine, the second sine. n is even.
  void (*rotate)(float* x, std::size_t n, const float* cosines, const float* sines);
  // The index of the largest element, the first of equal ones; 0 if none is a number. n > 0.
  std::size_t (*largest)(const float* x, std::size_t n);
  // The sum of exp(x[i] - top); top is not less than any x[i].
  float (*exp_sum)(const float* x, std::size_t n, float top);
  // Quantizes row `row` into `out`, where all rows begin. `group` is ProductQ4::group.
  void (*quantize_blocks)(const float* x, std::size_t k, std::size_t row, std::size_t group, std::byte* out);
  void (*product_q4)(const ProductQ4&, const Range&);
  void (*product_q8_blocks)(const ProductQ8Blocks&, const Range&);
  // Turns a row into fixed point for product_fixed_q8 of the same set. Returns the unit.
  float (*fix_row_q8)(const float* x, std::size_t k, std::byte* out);
  void (*product_fixed_q8)(const ProductFixedQ8&, const Range&);
  // The same for product_fixed_q4 and product_fixed_q8_blocks.
  float (*fix_row_q4)(const float* x, std::size_t k, std::byte* out);
  void (*product_fixed_q4)(const ProductFixedQ4&, const Range&);
  void (*product_fixed_q8_blocks)(const ProductFixedQ8Blocks&, const Range&);
  void (*causal_attention)(const CausalAttention&);
};

// The fastest set for this processor.
const Kernels& kernels() noexcept;
// Every set that this processor supports, the plain one first. For tests.
std::span<const Kernels* const> all_kernels() noexcept;

// These pack rows of a matrix [n, k] as it is stored: `rows` rows from row `first`, a multiple of kPanel. What they are
// given begins with that row; rows past n are not read.

// f16 or bf16, for product_f16 and product_bf16.
void pack_halves(const std::uint16_t* w, std::size_t n, std::size_t k, std::size_t first, std::size_t rows,
                 std::uint16_t* out);
// Codes for product_i8 and product_fixed_q8; sum[0] is that of row 0.
void pack_codes_i8(const std::int8_t* codes, std::size_t n, std::size_t k, std::size_t first, std::size_t rows,
                   std::int8_t* out, std::int32_t* sum);
// 4-bit codes for product_q4 and product_fixed_q4: two's complement, element 2i in the low half of a byte, with scales
// [rows, k / block]. block is a multiple of kBlock.
void pack_codes_q4(const std::uint8_t* codes, const float* scales, std::size_t block, std::size_t n, std::size_t k,
                   std::size_t first, std::size_t rows, std::uint8_t* out);
// 8-bit codes for product_q8_blocks and product_fixed_q8_blocks, with scales [rows, k / kBlock].
void pack_codes_q8(const std::int8_t* codes, const float* scales, std::size_t n, std::size_t k, std::size_t first,
                   std::size_t rows, std::uint8_t* out);

// The table of each instruction set, for kernels.cc; null if it is not compiled in.
const Kernels* plain_kernels() noexcept;
const Kernels* wasm_kernels() noexcept;  // defined where WebAssembly has SIMD
const Kernels* avx2_kernels() noexcept;
const Kernels* avx512_kernels() noexcept;
const Kernels* avx512bf16_kernels() noexcept;  // also null if this processor sums pairs in another order

}  // namespace weighbridge::kernels

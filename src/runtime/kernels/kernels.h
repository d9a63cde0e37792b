// SPDX-License-Identifier: Apache-2.0
// The numeric kernels of the runtimes, compiled for several instruction sets and chosen when the program runs. Owns
// what each computes and in which order; leaves models, memory and threads to its callers (team.h has threads).
//
// SAME BITS  Every set gives the same bits. An element of a product is one chain of fused multiply-adds over k in
//            ascending order, so it depends on neither the other rows nor how the work is shared out. A sum over a row
//            is 16 partial sums (element i goes to i mod 16), added as one tree: 8 apart, 4, 2, 1. exp, erf and their
//            kin are polynomials of this file's own, evaluated alike everywhere; the C library's are never called.
// WEIGHTS    A matrix [n, k], row-major, is packed once into panels of 48 columns of its transpose: panel j holds
//            [k][width] with width = 48, for the last one what is left rounded up to 16 (zeros fill it), and begins at
//            element j * 48 * k. Vectors then run over output columns.
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
// Elements of a packed [n, k].
constexpr std::size_t packed_size(std::size_t n, std::size_t k) noexcept { return round_up(n, kLanes) * k; }
// int8 products take k four at a time.
constexpr std::size_t int8_depth(std::size_t k) noexcept { return round_up(k, 4); }

// What becomes of a product before it is stored. gelu is x * Phi(x) by the error function, gelu_tanh its tanh form.
enum class Activation : std::uint8_t { none, gelu, gelu_tanh };

// Which rows of the activations and which panels of the weights one call computes.
struct Range {
  std::size_t row_begin, row_end, panel_begin, panel_end;
};

// c = activation(bias + a * w^T) + residual: a [m, k], w packed [n, k], bias [n] padded to 16, c and residual [m, n].
// residual may be null, and may be c. `after`: weights that the caller needs next, asked for while the last panel is
// computed; changes nothing else.
struct Product {
  std::size_t n, k;
  const float* bias;
  Activation activation;
  const float* residual;
  std::size_t residual_stride;
  float* c;
  std::size_t c_stride;
  const void* after = nullptr;
};
struct ProductF32 : Product {
  const float* a;
  std::size_t a_stride;
  const float* w;
};
// The same with weights that are f16 bits, which become f32 where they are used: sums are those of f32.
struct ProductF16 : Product {
  const float* a;
  std::size_t a_stride;
  const std::uint16_t* w;
};
// a[i][j] stands for (code - zero[i]) * scale[i]; w[n][k] for code * w_scale[n]; w_sum[n] is the sum of the codes of
// row n.
struct ProductI8 : Product {
  const std::uint8_t* a;
  std::size_t a_stride;  // a multiple of 4; codes past k are multiplied by zero
  const float* a_scale;
  const std::int32_t* a_zero;
  const std::int8_t* w;
  const float* w_scale;       // padded to 16
  const std::int32_t* w_sum;  // padded to 16
};

// One head of one sequence: out[i] = softmax(scale * q[i] * k^T) * v. Rows are `stride` apart, `head` wide.
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

// Weights of four bits with a scale for each kBlock of k: a stands for code * scale of its block, w for
// (code - 8) * scale of its block. k is a multiple of kBlock. Panels of w hold, block by block and vector by vector,
// 16 scales and 4 x 64 bytes of codes: byte [e][4 c + t] has k = 8 e + t of column c in its low half, k = 8 e + 4 + t
// in the high one. Rows of a stand in groups, each block by block: the codes of its rows, their scales, and -8 times
// the sums of their codes. A group is kTileRows rows, or the one row that there is.
inline constexpr std::size_t kBlock = 32, kQ4Bytes = kLanes * sizeof(float) + kLanes * kBlock / 2;
inline constexpr std::size_t kQ4RowBytes = kBlock + sizeof(float) + sizeof(std::int32_t);
constexpr std::size_t packed_q4_size(std::size_t n, std::size_t k) noexcept {
  return round_up(n, kLanes) / kLanes * (k / kBlock) * kQ4Bytes;
}
constexpr std::size_t q4_group(std::size_t rows) noexcept { return rows == 1 ? 1 : kTileRows; }
constexpr std::size_t q4_rows_size(std::size_t rows, std::size_t k) noexcept {
  return round_up(rows, q4_group(rows)) * (k / kBlock) * kQ4RowBytes;
}
// Bytes of one panel whose codes became bytes.
inline constexpr std::size_t kQ4WideBytes = kLanes * sizeof(float) + kLanes * kBlock;
constexpr std::size_t q4_wide_size(std::size_t k) noexcept { return kPanel / kLanes * (k / kBlock) * kQ4WideBytes; }
struct ProductQ4 : Product {
  const std::byte* a;  // q4_rows_size(rows, k) bytes, which quantize_blocks() fills
  std::size_t group;   // q4_group(rows)
  const std::uint8_t* w;
  std::uint8_t* wide;  // q4_wide_size(k) bytes to work in; not needed for one row
};

// The heads of one sequence that read the same keys and values, which were kept: row r sees the first `first` + r keys.
// Queries and results of the heads stand side by side. keys hold panels of 48 positions, [head][48] each, values a row
// of `head` for each position, and 16 floats more behind the last. What stands past the last key may be any numbers.
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
  void (*attention)(const Attention&);
  // x[i] = gamma * (x[i] - mean) / sqrt(variance + epsilon) + beta, for each of `rows` rows, in place.
  void (*layer_norm)(float* x, std::size_t rows, std::size_t width, const float* gamma, const float* beta,
                     float epsilon);
  void (*add)(const float* a, const float* b, float* out, std::size_t n);
  bool (*all_finite)(const float* x, std::size_t n);
  // Over the rows of x [rows, width], rows > 0.
  void (*mean)(const float* x, std::size_t rows, std::size_t width, float* out);
  void (*max)(const float* x, std::size_t rows, std::size_t width, float* out);
  // Divides by the Euclidean norm, or by 1e-12 where that is less.
  void (*normalize)(float* x, std::size_t n);
  // Codes of one row by its own range, zero included, so that zero is a code; n codes, then zeros up to the padding.
  void (*quantize_row)(const float* x, std::size_t n, std::uint8_t* codes, float& scale, std::int32_t& zero);
  void (*product_i8)(const ProductI8&, const Range&);

  // gate[i] = silu(gate[i]) * up[i], silu(x) = x / (1 + exp(-x)).
  void (*silu_product)(float* gate, const float* up, std::size_t n);
  // out[i] = x[i] / sqrt(mean of squares + epsilon) * weight[i].
  void (*rms_norm)(const float* x, std::size_t width, const float* weight, float epsilon, float* out);
  // Turns each pair (x[2i], x[2i + 1]) by an angle: x[i] = x[i] * cosines[i] + x[i ^ 1] * sines[i], where both of a
  // pair have its cosine, the first one -sine and the second sine. n is even.
  void (*rotate)(float* x, std::size_t n, const float* cosines, const float* sines);
  // The place of the largest, the first of equal ones; 0 where none is a number. n > 0.
  std::size_t (*largest)(const float* x, std::size_t n);
  // The sum of exp(x[i] - top), top no less than any x[i].
  float (*exp_sum)(const float* x, std::size_t n, float top);
  // Row `row` of those that `group` is for, into `out`, where all rows begin.
  void (*quantize_blocks)(const float* x, std::size_t k, std::size_t row, std::size_t group, std::byte* out);
  void (*product_q4)(const ProductQ4&, const Range&);
  void (*causal_attention)(const CausalAttention&);
};

// The best for this processor.
const Kernels& kernels() noexcept;
// Every set that this processor runs, the plain one first. For tests.
std::span<const Kernels* const> all_kernels() noexcept;

// Codes of a matrix [n, k] by the largest magnitude of each row, packed for product_i8: panels of [k / 4][width][4].
// scale and sum have round_up(n, 16) elements.
void pack_i8(const float* w, std::size_t n, std::size_t k, std::int8_t* out, float* scale, std::int32_t* sum);

// The same from codes that are there already: `rows` of them from row `first`, a multiple of kPanel, of a matrix
// [n, k].
void pack_codes_i8(const std::int8_t* codes, std::size_t n, std::size_t k, std::size_t first, std::size_t rows,
                   std::int8_t* out, std::int32_t* sum);
// Codes of four bits, two's complement, element 2i in the low half of a byte, with scales [n, k / block], block a
// multiple of kBlock.
void pack_codes_q4(const std::uint8_t* codes, const float* scales, std::size_t block, std::size_t n, std::size_t k,
                   std::size_t first, std::size_t rows, std::uint8_t* out);

// The tables of each instruction set, for kernels.cc; null where it is not compiled in.
const Kernels* plain_kernels() noexcept;
const Kernels* wasm_kernels() noexcept;  // defined where WebAssembly has vectors
const Kernels* avx2_kernels() noexcept;
const Kernels* avx512_kernels() noexcept;

}  // namespace weighbridge::kernels

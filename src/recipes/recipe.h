// SPDX-License-Identifier: Apache-2.0
// How several stored tensors make one: where the codes of an element lie, which parameters belong to it, and the
// arithmetic of the library that wrote them. match.cc finds recipes in a model; this computes their elements.
//
// A recipe sees its tensor as a matrix of `rows` x `columns` in the order of the logical elements. A grid says which
// parameter an element has. All arithmetic is in f32, with roundings where the library rounds:
//
//   v = value of the code
//   v = v - zero                 (Step::subtract; rounded to `step` for HQQ)
//   v = v * scale                (rounded to `step` for MLX and Quanto)
//   v = v + bias                 (Step::add)
//   v = v * factor
//   element = v rounded to `result`
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/payload/elements.h"
#include "weighbridge/dtype.h"

namespace weighbridge::codecs {
struct Kernels;
}

namespace weighbridge::recipes {

// Where the codes of a row lie.
enum class Packing : std::uint8_t {
  elements,     // one element a code
  stream,       // a row is a little-endian stream of bits, least significant first
  padded,       // 32-bit words of 32 / bits codes each; the rest of a word is unused
  columns,      // GPTQ: a column of 32-bit words is such a stream along the columns of the logical matrix
  planar,       // GPTQModel's gptq_p: likewise, 32 codes at a time in planes of 4, 2 and 1 bits
  planar_rows,  // the same along the rows: the words of a row are together
  awq,          // a 32-bit word has one column of eight rows, interleaved
  nibbles,      // bitsandbytes: one row of nibbles, the first in the high bits
  parts,        // HQQ and Quanto: row i is in the bits of part i / rows of a part
};

// Which parameter of a tensor belongs to an element: of matrix `row / rows` ... at
// lead * lead_step + row / rows * row_step + column / columns * column_step.
struct Grid {
  core::ElementsPtr values{};           // f32; null: there is none
  std::uint64_t rows = 1, columns = 1;  // elements that share a parameter
  std::uint64_t row_step = 0, column_step = 0, lead_step = 0;
};

enum class Step : std::uint8_t { none, subtract, add };

// NVFP4: the stored scales of the blocks, and the one number that multiplies or divides all of them.
struct BlockScales {
  core::ElementsPtr bytes{};  // e4m3; null: it is not NVFP4
  float global = 1;
  bool divides = false, rounds = false;  // rounds: the scale that results is rounded to bf16
};

struct Recipe {
  std::string_view id;                            // of the row in the table
  std::vector<std::uint64_t> shape{};             // of the logical tensor
  std::uint64_t lead = 1, rows = 0, columns = 0;  // matrices, and the size of each as it is stored
  bool transposed = false;                        // the logical matrices have the stored columns as rows

  Packing packing = Packing::elements;
  std::uint32_t bits = 8;
  core::ElementsPtr codes{};       // in the dtype of the tensor
  std::uint64_t row_bytes = 0;     // of a stored row, of a packing in rows
  std::uint64_t part_rows = 0;     // parts: stored rows
  bool first_high = false;         // parts: the first part is in the highest bits
  std::array<float, 256> value{};  // of each code

  Grid scale{}, zero{};
  BlockScales nvfp4{};
  Step step = Step::none;
  std::vector<std::uint32_t> groups{};   // GPTQ's g_idx: the group of each column
  DType rounded_scale = DType::unknown;  // the type that scales are rounded to first, if the result is rounded
  DType rounded = DType::unknown;        // the type that intermediate results are rounded to
  float factor = 1;
  bool minus_one = false;       // GPTQ: zeros are stored minus one
  DType result = DType::f32;    // of the reference
  bool keeps_rounding = false;  // a rounding to `rounded` is part of the value, also as f32
};

// The stored elements of a part. Those that are only decoded in order, as of zstd, are decoded once and held until the
// last one was read.
core::ElementsPtr stored_elements(const Part&);

// The elements of the recipe in f32, or with the last rounding to Recipe::result.
// Tests name the instruction set.
core::ElementsPtr elements_of(std::shared_ptr<const Recipe>, bool rounded, const codecs::Kernels* = nullptr);

// Tables of values by code.
std::array<float, 256> integers(std::uint32_t bits, std::int32_t subtracted);
std::array<float, 256> twos_complement();
std::array<float, 256> floats(DType dtype);       // f8 types, by their bits
std::array<float, 256> e2m1(bool negative_zero);  // code 8 is -0 or +0
std::array<float, 256> e2m3();

}  // namespace weighbridge::recipes

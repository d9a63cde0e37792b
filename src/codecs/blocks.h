// SPDX-License-Identifier: Apache-2.0
// Decodes elements from blocks. Owns the functions of a block type (BlockCodec) and the tensor description that they
// take (BlockForm). The rows are in blocks.cc, the functions in one file per namespace of ids. Callers read the parts.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "codecs/dequant.h"
#include "codecs/ggml.h"
#include "weighbridge/block_type.h"
#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

inline constexpr std::size_t kMaxRoles = 3;

// One tensor of a block type.
struct BlockForm {
  const BlockTypeInfo* type = nullptr;
  std::uint32_t rank = 0;
  std::uint64_t rows = 0, columns = 0;  // the slowest dimension, and the product of the others; rank 1 is one row
  std::uint64_t group = 0;              // block_size or group_size: elements that share a scale
  std::uint32_t bits = 0;
  Packing packing;
  std::array<DType, kMaxRoles> dtypes{};  // of the parts, in the order of the type's roles
  std::uint64_t row = 0;                  // the fastest dimension
  bool msb_first = false;                 // the first code of a word has its highest bits
  std::int64_t zero = 0;                  // what every code is offset by, if no part says so

  std::uint64_t elements() const noexcept { return rows * columns; }  // only where block_problem() is empty
};

struct ByteRange {
  std::uint64_t offset = 0, length = 0;
};

// How to encode a group, for types with one f32 scale per group of codes.
struct ScaledEncoder {
  float (*scale)(float largest) noexcept;  // from the largest magnitude in the group
  void (*encode)(std::span<const float> values, float scale, std::byte* codes) noexcept;
  std::uint32_t values_per_byte;  // of codes
};

// Whether an encoder uses the importance of elements.
enum class Importance : std::uint8_t { ignored, optional, required };

// The functions of one block type. Call the others only if `problem` returns nothing.
struct BlockCodec {
  // A lower-case sentence that says why such a tensor cannot be read; empty if it can.
  std::string (*problem)(const BlockForm&);
  // The granularity, in elements, at which the main part can be split and decoded separately.
  std::uint64_t (*step)(const BlockForm&) noexcept;
  // The bytes of the part with this role that elements [first, first + count) need. `first` is a multiple of step().
  ByteRange (*range)(const BlockForm&, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept;
  // Decodes exactly those elements to `out`; parts[role] are the bytes of range().
  void (*decode)(const BlockForm&, std::uint64_t first, std::uint64_t count,
                 std::span<const std::span<const std::byte>> parts, float* out) noexcept;
  std::uint64_t batch = 0;                // preferred number of elements per call
  const ScaledEncoder* scaled = nullptr;  // null if it has no such encoder
  // Encodes rows of whole blocks to the one part; null if it has no such encoder. With an importance, which has a
  // weight for each element, it is one row. Returns the first element that the type cannot hold, and values.size()
  // otherwise.
  std::size_t (*encode)(std::span<const float> values, const GgmlTerms& terms, std::byte* blocks) noexcept = nullptr;
  Importance importance = Importance::ignored;
};

// As BlockCodec::problem; also checks that the size of the shape does not overflow.
std::string block_problem(const BlockForm&);
// Bytes of the part with this role; only if block_problem() is empty.
std::uint64_t block_part_size(const BlockForm&, std::size_t role) noexcept;

extern const BlockCodec kSlmQ8_0, kSlmQ4_0;                        // blocks_slm.cc
extern const BlockCodec kZtGroup, kZtQuant, kZtQuantZeros, kZtMx;  // blocks_zt.cc
#define WB_GGML(name, elements, bytes) extern const BlockCodec kGgml_##name;
#include "codecs/ggml_types.def"  // blocks_ggml.cc
#undef WB_GGML

}  // namespace weighbridge::codecs

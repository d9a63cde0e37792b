// SPDX-License-Identifier: Apache-2.0
// Elements out of blocks. Owns what a block type does (BlockCodec) and what its functions are told of a tensor
// (BlockForm); the rows are in blocks.cc, the functions in one file for each namespace of ids. Reading the parts is the
// caller's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codecs/dequant.h"
#include "weighbridge/block_type.h"
#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

inline constexpr std::size_t kMostRoles = 3;

// One tensor of a block type.
struct BlockForm {
  const BlockTypeInfo* type = nullptr;
  std::uint32_t rank = 0;
  std::uint64_t rows = 0, columns = 0;  // the slowest dimension and the product of the others; rank 1: one row
  std::uint64_t group = 0;              // block_size or group_size: what shares a scale
  std::uint32_t bits = 0;
  Packing packing;
  std::array<DType, kMostRoles> dtypes{};  // of the parts, in the order of the type's roles

  std::uint64_t elements() const noexcept { return rows * columns; }  // only where block_problem() is empty
};

struct ByteRange {
  std::uint64_t offset = 0, length = 0;
};

// Of types that keep one f32 scale for each group of codes: how a group is made.
struct ScaledEncoder {
  float (*scale)(float largest) noexcept;  // of the largest magnitude in the group
  void (*encode)(std::span<const float> values, float scale, std::byte* codes) noexcept;
  std::uint32_t values_per_byte;  // of codes
};

// The functions of one block type. All but `problem` are for forms without one.
struct BlockCodec {
  // A lower-case sentence that says what keeps such a tensor from being read; empty when nothing does.
  std::string (*problem)(const BlockForm&);
  // Elements after which the bytes of the main part can be cut, and decoding begin anew.
  std::uint64_t (*step)(const BlockForm&) noexcept;
  // What elements [first, first + count) need of the part with this role. `first` is a multiple of step().
  ByteRange (*range)(const BlockForm&, std::size_t role, std::uint64_t first, std::uint64_t count) noexcept;
  // Those elements into `out`, exactly; parts[role] are the bytes of range().
  void (*decode)(const BlockForm&, std::uint64_t first, std::uint64_t count,
                 std::span<const std::span<const std::byte>> parts, float* out) noexcept;
  std::uint64_t batch = 0;                // elements that are best decoded at once
  const ScaledEncoder* scaled = nullptr;  // null: it has no encoder of this kind
};

// As BlockCodec::problem, and that the shape has a size.
std::string block_problem(const BlockForm&);
// Bytes of the part with this role; only where block_problem() is empty.
std::uint64_t block_part_size(const BlockForm&, std::size_t role) noexcept;

extern const BlockCodec kSlmQ8_0, kSlmQ4_0;  // blocks_slm.cc
extern const BlockCodec kZtGroup;            // blocks_zt.cc

}  // namespace weighbridge::codecs

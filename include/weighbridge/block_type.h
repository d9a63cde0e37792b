// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a tensor's parts make up its elements, and the table of block types, in which several elements are stored
/// together as codes with scales. Owns Layout and BlockTypeInfo; dtype.h has the scalar types.
///
/// A tensor has either scalar elements (Tensor::dtype() is that of its part) or blocks (Tensor::block_type() is a row
/// of this table, and dtype() is f32, the type that blocks decode to). An id includes who defined the type, because
/// names are ambiguous: SLM's q4_0 and GGML's have different bytes.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace weighbridge {
namespace codecs {
struct BlockCodec;
}  // namespace codecs

/// How the parts of a tensor make up its elements.
enum class Layout : std::uint8_t {
  dense,            ///< one part with every element
  sparse_csr,       ///< values, column indices and row pointers
  sparse_coo,       ///< values and coordinates
  quantized_group,  ///< codes with a scale for each group of a row
  quantized_row,    ///< codes with a scale for each row
  quantized_block,  ///< codes with a scale for each block of a row
  structural        ///< a layout that this build does not know: has parts and attributes, no elements
};
/// "dense", "sparse_csr", ...; "structural" for layouts this build does not know
std::string_view name(Layout) noexcept;
/// Whether its elements are blocks.
constexpr bool is_quantized(Layout layout) noexcept {
  return layout == Layout::quantized_group || layout == Layout::quantized_row || layout == Layout::quantized_block;
}

/// One row of the table.
struct BlockTypeInfo {
  std::string_view id;    ///< unique, with a namespace for who defined it: "slm.q8_0"
  std::string_view name;  ///< for display, not unique: "q8_0"
  Layout layout;          ///< of its tensors
  /// The attribute `type` of its tensors; empty if the layout alone identifies them.
  std::string_view type_attribute{};
  std::uint32_t block_elements = 0;  ///< elements per block; 0: set by a parameter
  /// Bytes per block, if one part holds whole blocks; 0: its roles are separate parts.
  std::uint32_t block_bytes = 0;
  std::span<const std::string_view> roles;       ///< of its parts, the main one first
  std::span<const std::string_view> parameters;  ///< attributes needed to decode the parts
  std::string_view reference;                    ///< the reference that its elements match bit for bit
  bool can_encode = false;                       ///< a conversion can write it: its name in Options::quantize
  const codecs::BlockCodec* codec;               ///< for the library's own use
};

/// Every block type, grouped by namespace.
std::span<const BlockTypeInfo> all_block_types() noexcept;
/// The row with this id, exact spelling; null if there is none.
const BlockTypeInfo* find_block_type(std::string_view id) noexcept;
/// The row for tensors of this layout and attribute `type` (which is ignored if the layout alone identifies them); null
/// if there is none.
const BlockTypeInfo* find_block_type(Layout, std::string_view type_attribute) noexcept;

}  // namespace weighbridge

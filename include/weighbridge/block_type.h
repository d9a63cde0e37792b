// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a tensor's parts make up its elements, and the one table of block types: elements that are kept as codes with
/// scales, several together. Owns Layout and BlockTypeInfo; scalar types are those of dtype.h.
///
/// A tensor has either scalar elements (Tensor::dtype() is that of its part) or blocks (Tensor::block_type() is a row
/// of this table, and dtype() is f32, what the blocks stand for). An id says who defined the type, because names do
/// not: SLM's q4_0 and GGML's are different bytes.
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
  dense,            ///< one part, an element for each place
  sparse_csr,       ///< values, column indices and row pointers
  sparse_coo,       ///< values and coordinates
  quantized_group,  ///< codes with a scale for each group of a row
  quantized_row,    ///< codes with a scale for each row
  quantized_block,  ///< codes with a scale for each block of a row
  structural        ///< no layout that this build knows: parts and attributes, no elements
};
/// "dense", "sparse_csr", ...; "structural" for layouts this build does not know
std::string_view name(Layout) noexcept;
/// Whether its elements are blocks.
constexpr bool is_quantized(Layout layout) noexcept {
  return layout == Layout::quantized_group || layout == Layout::quantized_row || layout == Layout::quantized_block;
}

/// One row of the table.
struct BlockTypeInfo {
  std::string_view id;    ///< unique, with the namespace of who defined it: "slm.q8_0"
  std::string_view name;  ///< as people read it, not unique: "q8_0"
  Layout layout;          ///< of its tensors
  /// What the attribute `type` of its tensors says; empty: the layout alone tells.
  std::string_view type_attribute;
  std::uint32_t block_elements;  ///< elements a block; 0: a parameter says it
  /// Bytes a block, where one part holds blocks whole; 0: its roles lie apart.
  std::uint32_t block_bytes;
  std::span<const std::string_view> roles;       ///< of its parts, the main one first
  std::span<const std::string_view> parameters;  ///< attributes without which the parts cannot be understood
  std::string_view reference;                    ///< what its elements are compared with, bit for bit
  bool can_encode;                               ///< a conversion can make it: Options::quantize by its name
  const codecs::BlockCodec* codec;               ///< for the library itself
};

/// Every block type, those of one namespace together.
std::span<const BlockTypeInfo> all_block_types() noexcept;
/// The row with this id, exact spelling; null if there is none.
const BlockTypeInfo* find_block_type(std::string_view id) noexcept;
/// The row of tensors of this layout whose attribute `type` says so (whatever it says, where the layout alone tells);
/// null if there is none.
const BlockTypeInfo* find_block_type(Layout, std::string_view type_attribute) noexcept;

}  // namespace weighbridge

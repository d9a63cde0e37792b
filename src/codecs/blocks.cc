// SPDX-License-Identifier: Apache-2.0
// The table of block types.
#include "codecs/blocks.h"

#include "base/checked.h"
#include "codecs/ggml.h"

namespace weighbridge {
namespace {

constexpr std::string_view kScaledRoles[] = {"data", "scales"}, kGroupRoles[] = {"packed_weight", "scales", "zeros"};
constexpr std::string_view kZeroedRoles[] = {"data", "scales", "zeros"};
constexpr std::string_view kQuantParameters[] = {"bits", "group_size", "packing", "zero_point"};
constexpr std::string_view kData[] = {"data"};
constexpr std::string_view kBlockSize[] = {"block_size"}, kGroupParameters[] = {"bits", "group_size", "packing"};

// The attribute `type` of GGML's types is the id, because SLM's q4_0 has the same layout and name, but other bytes.
constexpr BlockTypeInfo ggml(std::string_view id, std::uint32_t elements, std::uint32_t bytes, bool can_encode,
                             const codecs::BlockCodec* codec) noexcept {
  return {.id = id,
          .name = id.substr(id.find('.') + 1),
          .layout = Layout::quantized_block,
          .type_attribute = id,
          .block_elements = elements,
          .block_bytes = bytes,
          .roles = kData,
          .parameters = {},
          .reference = id == "ggml.q8_1"
                           ? "ggml-common.h: scale times code; neither GGML nor gguf has a decoder"
                           : "dequantize_row_* of ggml-quants.c; gguf 0.19: tests/interop/test_ggml_blocks.py",
          .can_encode = can_encode,
          .codec = codec};
}

constexpr BlockTypeInfo kTable[] = {
    {.id = "slm.q8_0",
     .name = "q8_0",
     .layout = Layout::quantized_row,
     .type_attribute = "q8_0",
     .roles = kScaledRoles,
     .parameters = kBlockSize,
     .reference = "SLM \"Dtypes\": tests/witness/slm.py",
     .can_encode = true,
     .codec = &codecs::kSlmQ8_0},
    {.id = "slm.q4_0",
     .name = "q4_0",
     .layout = Layout::quantized_block,
     .type_attribute = "q4_0",
     .roles = kScaledRoles,
     .parameters = kBlockSize,
     .reference = "SLM \"Dtypes\": tests/witness/slm.py",
     .can_encode = true,
     .codec = &codecs::kSlmQ4_0},
    {.id = "zt.group",
     .name = "quantized_group",
     .layout = Layout::quantized_group,
     .roles = kGroupRoles,
     .parameters = kGroupParameters,
     .reference = "zTensor 1.1, III.4: the formula, element by element (codecs/dequant_test.cc)",
     .codec = &codecs::kZtGroup},
    {.id = "zt.quant",
     .name = "quant_group",
     .layout = Layout::quantized_block,
     .type_attribute = "zt.quant",
     .roles = kScaledRoles,
     .parameters = kQuantParameters,
     .reference = "zt.quant_group/1, \"Reconstruction\": the formula, element by element (codecs/blocks_zt_test.cc)",
     .codec = &codecs::kZtQuant},
    {.id = "zt.quant_zeros",
     .name = "quant_group",
     .layout = Layout::quantized_block,
     .type_attribute = "zt.quant_zeros",
     .roles = kZeroedRoles,
     .parameters = kQuantParameters,
     .reference = "as zt.quant, with a zero for each group",
     .codec = &codecs::kZtQuantZeros},
    {.id = "zt.mx",
     .name = "mx",
     .layout = Layout::quantized_block,
     .type_attribute = "zt.mx",
     .roles = kScaledRoles,
     .parameters = kBlockSize,
     .reference = "zt.mx/1, \"Reconstruction\", and OCP MX v1.0: element by element (codecs/blocks_zt_test.cc)",
     .codec = &codecs::kZtMx},
#define WB_GGML(name, elements, bytes) \
  ggml("ggml." #name, elements, bytes, codecs::ggml_encodes(codecs::Ggml::name), &codecs::kGgml_##name),
#include "codecs/ggml_types.def"
#undef WB_GGML
};

}  // namespace

std::string_view name(Layout layout) noexcept {
  switch (layout) {
    case Layout::dense: return "dense";
    case Layout::sparse_csr: return "sparse_csr";
    case Layout::sparse_coo: return "sparse_coo";
    case Layout::quantized_group: return "quantized_group";
    case Layout::quantized_row: return "quantized_row";
    case Layout::quantized_block: return "quantized_block";
    case Layout::structural: return "structural";
  }
  return "structural";
}

std::span<const BlockTypeInfo> all_block_types() noexcept { return kTable; }

const BlockTypeInfo* find_block_type(std::string_view id) noexcept {
  for (const BlockTypeInfo& row : kTable)
    if (row.id == id) return &row;
  return nullptr;
}

const BlockTypeInfo* find_block_type(Layout layout, std::string_view type_attribute) noexcept {
  for (const BlockTypeInfo& row : kTable)
    if (row.layout == layout && (row.type_attribute.empty() || row.type_attribute == type_attribute)) return &row;
  return nullptr;
}

namespace codecs {

std::string block_problem(const BlockForm& form) {
  // No part needs more than eight bytes per element.
  const auto elements = base::checked_mul(form.rows, form.columns);
  if (!elements || !base::checked_mul(*elements, 8)) return "the shape has no size in bytes";
  return form.type->codec->problem(form);
}

std::uint64_t block_part_size(const BlockForm& form, std::size_t role) noexcept {
  return form.type->codec->range(form, role, 0, form.elements()).length;
}

}  // namespace codecs
}  // namespace weighbridge

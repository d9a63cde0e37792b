// SPDX-License-Identifier: Apache-2.0
// The fields of each kind of node, in their order.
#include "core/payload/digest_nodes.h"

#include <algorithm>
#include <string>

#include "base/order.h"
#include "core/payload/widen.h"

namespace weighbridge::core {
namespace {

// A tensor's type in version 1: a display name, and parameters that depend on the layout.
struct TypeFields {
  std::string_view type;
  std::span<const std::string_view> parameters;
};
TypeFields fields_of_version_1(const Tensor& tensor) noexcept {
  static constexpr std::string_view kGroup[] = {"bits", "group_size", "packing"}, kBlock[] = {"block_size"};
  switch (tensor.layout()) {
    case Layout::quantized_group: return {name(Layout::quantized_group), kGroup};
    case Layout::quantized_block: return {tensor.type_name(), kBlock};
    case Layout::quantized_row: return {tensor.type_name(), {}};
    default: return {name(tensor.dtype()), {}};
  }
}
TypeFields fields_of(const Tensor& tensor, std::uint32_t version) noexcept {
  if (version == 1) return fields_of_version_1(tensor);
  if (const BlockTypeInfo* type = tensor.block_type()) return {type->id, type->parameters};
  return {name(tensor.dtype()), {}};
}

}  // namespace

DigestInput digest_input(const Tensor& tensor, const Part& part, std::uint32_t version) {
  const bool index = is_index(tensor.layout(), part.role());
  return {tensor, part, index, index ? part.count() * 8 : part.size(), version};
}

Node begin_part(const DigestInput& input) {
  Node node('P', input.version);
  node.text(input.part.role());
  node.text(input.index ? name(DType::u64) : name(input.part.dtype()));
  if (input.tensor.layout() == Layout::dense) {
    const Shape shape = input.tensor.shape();
    node.u64(shape.size());
    for (const std::uint64_t d : shape) node.u64(d);
  } else {
    node.u64(1);
    node.u64(input.part.count());
  }
  node.u64(input.size);
  node.u64(input.leaves());
  return node;
}

codecs::Digest256 tensor_node(const Tensor& tensor,
                              std::span<const std::pair<std::string_view, codecs::Digest256>> parts,
                              std::uint32_t version) {
  const auto [type, keys] = fields_of(tensor, version);
  Node node('T', version);
  node.text(name(tensor.layout()));
  node.text(type);
  const Shape shape = tensor.shape();
  node.u64(shape.size());
  for (const std::uint64_t d : shape) node.u64(d);
  std::vector<std::pair<std::string_view, std::string>> parameters;
  for (const std::string_view key : keys)
    if (const Value* value = tensor.attribute(key)) parameters.emplace_back(key, value->to_text());
  node.u64(parameters.size());
  for (const auto& [key, value] : parameters) {
    node.text(key);
    node.text(value);
  }
  node.u64(parts.size());
  for (const std::uint32_t i : base::order_by(parts.size(), [&](std::uint32_t at) { return parts[at].first; }))
    node.bytes(parts[i].second);
  return node.finish();
}

}  // namespace weighbridge::core

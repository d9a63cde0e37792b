// SPDX-License-Identifier: Apache-2.0
// quantized_group (III.4, reading Y5), quantized_row and quantized_block (reading Y10): whether the attributes say a
// packing that this build can undo, and the sizes that follow.
#include <algorithm>

#include "base/checked.h"
#include "codecs/dequant.h"
#include "core/dense.h"
#include "formats/ztensor1/judge.h"
#include "formats/ztensor1/rules.h"

namespace weighbridge::ztensor1 {
namespace {

codecs::QuantizedGroup scheme_of(const Entry& e, const Component& scales, const Component& zeros) {
  codecs::QuantizedGroup group;
  if (e.rank == 2) group.rows = e.dims[0], group.cols = e.dims[1];
  const auto number = [&](std::string_view key) -> std::uint64_t {
    const Value* const value = find(e.attributes, key);
    return value ? value->as_u64().value_or(0) : 0;
  };
  group.bits = static_cast<std::uint32_t>(std::min<std::uint64_t>(number("bits"), UINT32_MAX));
  group.group_size = number("group_size");
  if (const Value* const packing = find(e.attributes, "packing"); packing && packing->as_text())
    group.packing = codecs::parse_packing(*packing->as_text()).value_or(codecs::Packing{});
  group.scales = scales.logical;
  group.zeros = zeros.logical;
  return group;
}

// The stored length or the key does not contradict so many elements.
bool may_hold(const Component& c, std::optional<std::uint64_t> elements) noexcept {
  const auto size = elements ? packed_size(c.logical, *elements) : std::nullopt;
  if (!size) return false;
  if (c.encoding == "raw") return c.length == *size;
  return !c.has_uncompressed_length || c.uncompressed_length == *size;
}

}  // namespace

void Judge::quantized(Entry& e) {
  Component* const packed = need(e, kPackedWeight);
  Component* const scales = need(e, kScales);
  Component* const zeros = need(e, kZeros);
  if (!packed || !scales || !zeros) return;
  const codecs::QuantizedGroup group = scheme_of(e, *scales, *zeros);
  std::string problem = e.rank == 2 ? group.problem() : "the shape does not have two dimensions";
  if (problem.empty() && !doubt_) {
    packed->part_dims = {group.word_rows(), group.cols};
    scales->part_dims = zeros->part_dims = {group.group_rows(), group.cols};
    const auto words = base::checked_mul(group.word_rows(), group.cols),
               groups = base::checked_mul(group.group_rows(), group.cols);
    if (packed->logical != group.packing.word || !may_hold(*packed, words) || !may_hold(*scales, groups) ||
        !may_hold(*zeros, groups)) {
      problem = "the components do not have the dtype or the sizes that shape and attributes demand";
    } else if (!demand(e, *packed, words, rules::kLengthRule) || !demand(e, *scales, groups, rules::kLengthRule) ||
               !demand(e, *zeros, groups, rules::kLengthRule)) {
      return;
    }
  }
  if (!problem.empty()) doubt(rules::kQuantization, e, e.at, problem);
  for (Component* c : {packed, scales, zeros}) {
    if (!doubt_)
      c->part_rank = 2;
    else if (!loose(e, *c))
      return;
  }
  loose_rest(e, {packed, scales, zeros});
}

std::optional<Layout> Judge::scaled(Entry& e) {
  Layout layout = Layout::quantized_row;
  if (e.format == name(Layout::quantized_block))
    layout = Layout::quantized_block;
  else if (e.format != name(layout))
    return std::nullopt;
  const Value *const type = find(e.attributes, kType), *const block = find(e.attributes, "block_size");
  Component *const data = e.find(kData), *const scales = e.find(kScales);
  if (doubt_ || !type || !type->as_text() || !block || !block->as_u64() || !data || !scales) return std::nullopt;
  const auto codes = core::scaled_codes(layout, *type->as_text(), e.shape(), *block->as_u64());
  if (!codes || data->logical != (codes->nibbles ? DType::u8 : DType::i8) || scales->logical != DType::f32 ||
      !may_hold(*data, codes->data_size()) || !may_hold(*scales, codes->scale_count()))
    return std::nullopt;
  if (!demand(e, *data, codes->data_size(), rules::kLengthRule) ||
      !demand(e, *scales, codes->scale_count(), rules::kLengthRule))
    return layout;
  const std::uint64_t rows = e.rank > 1 ? e.dims[0] : 1;
  data->tensor_shape = !codes->nibbles;
  data->part_dims[0] = codes->data_size();
  data->part_rank = 1;
  scales->part_dims = {codes->nibbles ? rows : codes->scale_count(), rows == 0 ? 0 : codes->scale_count() / rows};
  scales->part_rank = codes->nibbles ? 2 : 1;
  loose_rest(e, {data, scales});
  return layout;
}

}  // namespace weighbridge::ztensor1

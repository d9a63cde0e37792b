// SPDX-License-Identifier: Apache-2.0
// quantized_group (III.4, reading Y5), quantized_row and quantized_block (reading Y10): whether the attributes describe
// a packing that this build can unpack, and the sizes that follow.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/checked.h"
#include "core/payload/elements.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/judge.h"

namespace weighbridge::ztensor1 {
namespace {

// Whether the component can hold this many elements by its stored length or decoded_length.
bool may_hold(const Component& c, std::optional<std::uint64_t> elements) noexcept {
  const auto size = elements ? packed_size(c.logical, *elements) : std::nullopt;
  if (!size) return false;
  if (c.encoding == "raw") return c.length == *size;
  return !c.has_decoded || c.decoded_length == *size;
}

// The form by the object's shape, attributes and components. The block type has at most three roles.
codecs::BlockForm form_of(const Entry& e, const BlockTypeInfo& type, std::initializer_list<const Component*> parts) {
  std::array<DType, codecs::kMaxRoles> dtypes{};
  std::ranges::transform(parts, dtypes.begin(), [](const Component* c) { return c->logical; });
  return core::block_form(type, e.shape(), e.attributes, std::span(dtypes).first(parts.size()));
}

// The number of elements of the component with this role. The form must be valid.
std::uint64_t count_of(const codecs::BlockForm& form, std::size_t role) noexcept {
  return codecs::block_part_size(form, role) / (info(form.dtypes[role]).bits / 8);
}

}  // namespace

void Judge::quantized(Entry& e) {
  Component* const packed = need(e, kPackedWeight);
  Component* const scales = need(e, kScales);
  Component* const zeros = need(e, kZeros);
  if (!packed || !scales || !zeros) return;
  const codecs::BlockForm form = form_of(e, *find_block_type(Layout::quantized_group, {}), {packed, scales, zeros});
  std::string problem = codecs::block_problem(form);
  if (problem.empty() && !unsupported_) {
    const std::uint64_t words = count_of(form, 0), groups = count_of(form, 1);
    const std::uint64_t n = form.packing.codes_per_word;
    packed->dims = {form.rows / n + (form.rows % n != 0 ? 1 : 0), form.columns};
    scales->dims = zeros->dims = {form.rows / form.group, form.columns};
    if (!may_hold(*packed, words) || !may_hold(*scales, groups) || !may_hold(*zeros, groups)) {
      problem = "the components do not have the sizes that shape and attributes demand";
    } else if (!demand(e, *packed, words, rules::kLengthRule) || !demand(e, *scales, groups, rules::kLengthRule) ||
               !demand(e, *zeros, groups, rules::kLengthRule)) {
      return;
    }
  }
  if (!problem.empty()) mark_unsupported(rules::kQuantization, e, e.at, problem);
  for (Component* c : {packed, scales, zeros}) {
    if (!unsupported_)
      c->rank = 2;
    else if (!loose(e, *c))
      return;
  }
  loose_rest(e, {packed, scales, zeros});
}

bool Judge::whole_blocks(Entry& e, const BlockTypeInfo& type, Component& data) {
  const codecs::BlockForm form = form_of(e, type, {&data});
  if (!codecs::block_problem(form).empty()) return false;
  const std::uint64_t bytes = codecs::block_part_size(form, 0);
  if (!may_hold(data, bytes)) return false;
  if (!demand(e, data, bytes, rules::kLengthRule)) return true;
  data.dims[0] = bytes;
  data.rank = 1;
  loose_rest(e, {&data});
  return true;
}

std::optional<Layout> Judge::scaled(Entry& e) {
  Layout layout = Layout::quantized_row;
  if (e.layout == name(Layout::quantized_block))
    layout = Layout::quantized_block;
  else if (e.layout != name(layout))
    return std::nullopt;
  const Value* const text = find(e.attributes, kType);
  Component* const data = e.find(kData);
  if (unsupported_ || !text || !text->as_text() || !data) return std::nullopt;
  const BlockTypeInfo* const type = find_block_type(layout, *text->as_text());
  if (!type) return std::nullopt;
  if (type->block_bytes != 0) return whole_blocks(e, *type, *data) ? std::optional(layout) : std::nullopt;
  const Value* const block = find(e.attributes, "block_size");
  Component* const scales = e.find(kScales);
  if (!block || !block->as_u64() || !scales) return std::nullopt;
  const codecs::BlockForm form = form_of(e, *type, {data, scales});
  if (!codecs::block_problem(form).empty()) return std::nullopt;
  const std::uint64_t codes = count_of(form, 0), groups = count_of(form, 1);
  if (!may_hold(*data, codes) || !may_hold(*scales, groups)) return std::nullopt;
  if (!demand(e, *data, codes, rules::kLengthRule) || !demand(e, *scales, groups, rules::kLengthRule)) return layout;
  data->tensor_shape = codes == form.elements();
  data->dims[0] = codes;
  data->rank = 1;
  const bool by_row = layout == Layout::quantized_row;  // one scale per row
  scales->dims = {by_row ? groups : form.rows, form.rows == 0 ? 0 : groups / form.rows};
  scales->rank = by_row ? 1 : 2;
  loose_rest(e, {data, scales});
  return layout;
}

}  // namespace weighbridge::ztensor1

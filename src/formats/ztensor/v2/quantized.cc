// SPDX-License-Identifier: Apache-2.0
// The quantized layouts (profiles zt.quant_group/1, zt.mx/1, gguf.<type>/1 and this project's own): their attributes,
// the parts that these require, and whether this build has a block type for them.
#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "codecs/dequant.h"
#include "core/payload/elements.h"
#include "formats/ztensor/v2/format.h"
#include "formats/ztensor/v2/judge.h"
#include "formats/ztensor/v2/profiles.h"

namespace weighbridge::ztensor2 {
namespace {

std::optional<std::string_view> text_in(const Value* map, std::string_view key) {
  const Value* const value = map && map->kind() == Value::Kind::map ? find(map->map(), key) : nullptr;
  return value ? value->as_text() : std::nullopt;
}

}  // namespace

bool Judge::takes_attribute(Entry& e, bool good, std::string_view key, const core::Said& expected) {
  if (good) return true;
  const Value* const value = find(e.attributes, key);
  return reject(rules::kLayoutAttribute, e, e.at, key, expected, value ? value->to_text() : "none");
}

std::optional<std::uint64_t> Judge::natural(Entry& e, std::string_view key, bool required) {
  const Value* const value = find(e.attributes, key);
  if (!value && !required) return std::nullopt;
  const bool integer = value && value->kind() == Value::Kind::integer && value->as_u64();
  if (!takes_attribute(e, integer, key, "an unsigned integer")) return std::nullopt;
  return value->as_u64();
}

Layout Judge::quantized(Entry& e) {
  QuantGroup q;
  const auto bits = natural(e, kBits, true), group = natural(e, kGroupSize, true), axis = natural(e, kAxis, true);
  if (!bits || !group || !axis) return Layout::structural;
  const Value *const packing = find(e.attributes, kPacking), *const zero = find(e.attributes, kZeroPoint);
  const auto word = text_in(packing, kWord), order = text_in(packing, kOrder), form = text_in(zero, kForm);
  const Value* const count = packing && packing->kind() == Value::Kind::map ? find(packing->map(), kPerWord) : nullptr;
  const Value* const scale = find(e.attributes, kScaleForm);
  q.bits = *bits;
  q.group = *group;
  q.axis = *axis;
  q.word = word ? dtype_from_name(*word).value_or(DType::unknown) : DType::unknown;
  const std::uint64_t word_bits = info(q.word).bits;
  q.per_word = count ? count->as_u64().value_or(0) : 0;
  const bool words = info(q.word).kind == DTypeKind::unsigned_integer;
  const bool fits = q.bits != 0 && word_bits % q.bits == 0 && q.per_word == word_bits / q.bits;
  const bool known_bits = (q.bits >= 2 && q.bits <= 6) || q.bits == 8;
  if (!takes_attribute(e, known_bits, kBits, "2, 3, 4, 5, 6 or 8") ||
      !takes_attribute(e, words && fits && (order == "lsb_first" || order == "msb_first"), kPacking,
                       "an unsigned word, an order, and the number of codes that fill the word"))
    return Layout::structural;
  q.msb_first = order == "msb_first";
  q.scale_form = scale ? scale->as_text().value_or("") : "";
  q.zero_form = form.value_or("");
  q.zero_packing = text_in(zero, kPacking).value_or("");
  const Value* const implied = zero && zero->kind() == Value::Kind::map ? find(zero->map(), kValue) : nullptr;
  const bool with_zeros = q.zero_form == "tensor";
  const bool good_zero = q.zero_form == "none" ||
                         (q.zero_form == "implied" && implied && implied->kind() == Value::Kind::integer) ||
                         (with_zeros && (q.zero_packing == "plain" || q.zero_packing == "same_as_data"));
  const bool exponent = q.scale_form == kExponent;
  if (!takes_attribute(e, exponent || q.scale_form == kF32Factors || q.scale_form == kF16Factors, kScaleForm,
                       "f32_factors, f16_factors or e8m0_exponent") ||
      !takes_attribute(e, good_zero, kZeroPoint, "none, an implied value, or a tensor with its packing") ||
      !takes_attribute(e, q.axis < e.rank, kAxis, core::Said("below ", e.rank)))
    return Layout::structural;
  const std::uint64_t along = e.dims[static_cast<std::size_t>(q.axis)];  // below the rank
  if (!takes_attribute(e, q.group == 0 || along % q.group == 0, kGroupSize, core::Said("a divisor of ", along)))
    return Layout::structural;
  if (!(with_zeros ? exactly(e, {kData, kScales, kZeros}) : exactly(e, {kData, kScales}))) return Layout::structural;
  PartEntry &data = *e.find(kData), &scales = *e.find(kScales);
  PartEntry* const zeros = e.find(kZeros);
  if (data.has_type || !codecs::is_integer(data.storage) || info(data.storage).bits != word_bits)
    reject(rules::kLayoutDtype, e, data, *word, data.type_name());
  const bool good_scales = exponent                      ? scales.logical == DType::f8_e8m0
                           : q.scale_form == kF16Factors ? scales.logical == DType::f16 || scales.logical == DType::bf16
                                                         : codecs::is_scale(scales.logical);
  if (!good_scales && scales.logical != DType::unknown)
    reject(rules::kLayoutDtype, e, scales, exponent ? "f8_e8m0" : "a floating-point type", scales.type_name());
  if (e.broken) return Layout::structural;
  const std::uint64_t elements = *base::element_count(e.shape());
  const std::uint64_t groups = q.group == 0 ? along : along / q.group, lanes = along == 0 ? 0 : elements / along;
  demand_bytes(e, data, base::checked_mul(elements / q.per_word, word_bits / 8), rules::kLayoutSize);
  demand(e, scales, base::checked_mul(groups, lanes), rules::kLayoutSize);
  if (zeros && q.zero_packing == "plain")
    demand(e, *zeros, base::checked_mul(groups, lanes), rules::kLayoutSize);
  else if (zeros)
    demand_bytes(e, *zeros, base::checked_mul(groups * lanes / q.per_word, word_bits / 8), rules::kLayoutSize);
  if (e.broken || unsupported_) return Layout::structural;
  const bool small_zero = !implied || implied->as_i64();
  AsBlocks blocks = from_quant_group(q, {data.logical, scales.logical, zeros ? zeros->logical : DType::unknown},
                                     e.shape(), std::move(e.attributes));
  e.attributes = std::move(blocks.attributes);
  if (!blocks.type || !small_zero || q.group == 0) {
    mark_unsupported(
        rules::kParameters, e, e.at,
        q.group == 0 ? "a scale for each code, or for each row: the text says both" : "groups in another order");
    return Layout::structural;
  }
  block_type_ = blocks.type;
  if (blocks.type->layout == Layout::quantized_group) {  // of zTensor 1.x
    data.role = blocks.type->roles[0];
    data.dims[0] = e.dims[0] / q.per_word;
    scales.dims[0] = zeros->dims[0] = groups;
    data.dims[1] = scales.dims[1] = zeros->dims[1] = lanes;
    data.rank = scales.rank = zeros->rank = 2;
  }
  return blocks.type->layout;
}

Layout Judge::mx(Entry& e) {
  const auto block = natural(e, kBlockSize, true), axis = natural(e, kAxis, false);
  const Value* const form = find(e.attributes, kScaleForm);
  if (e.broken || !block ||
      !takes_attribute(e, form && form->as_text() == kExponent, kScaleForm, std::string(kExponent)))
    return Layout::structural;
  if (e.rank == 0) {
    reject(rules::kLayoutShape, e, e.at, {}, "at least 1 dimension", "0");
    return Layout::structural;
  }
  const std::uint64_t along = axis.value_or(e.rank - 1);
  if (!takes_attribute(e, along < e.rank, kAxis, core::Said("below ", e.rank))) return Layout::structural;
  const std::uint64_t length = e.dims[static_cast<std::size_t>(along)];  // below the rank
  if (!takes_attribute(e, *block >= 2 && length % *block == 0, kBlockSize,
                       core::Said("at least 2, and a divisor of ", length)) ||
      !exactly(e, {kData, kScales}))
    return Layout::structural;
  PartEntry &data = *e.find(kData), &scales = *e.find(kScales);
  const bool element = data.logical == DType::f4 || data.logical == DType::f8_e4m3 || data.logical == DType::f8_e5m2 ||
                       data.logical == DType::i8;
  if (!element && data.logical != DType::unknown)
    reject(rules::kLayoutDtype, e, data, "f4_e2m1, f8_e4m3fn, f8_e5m2 or i8", data.type_name());
  if (scales.logical != DType::f8_e8m0) reject(rules::kLayoutDtype, e, scales, "f8_e8m0", scales.type_name());
  if (e.broken) return Layout::structural;
  const std::uint64_t elements = *base::element_count(e.shape());
  demand(e, data, elements, rules::kLayoutSize);
  demand(e, scales, elements / *block, rules::kLayoutSize);
  if (e.broken || unsupported_) return Layout::structural;
  AsBlocks blocks = from_mx(std::move(e.attributes));
  e.attributes = std::move(blocks.attributes);
  if (!blocks.type || along + 1 != e.rank) {
    mark_unsupported(rules::kParameters, e, e.at, "blocks that do not run along the last dimension");
    return Layout::structural;
  }
  data.tensor_shape = true;
  block_type_ = blocks.type;
  return blocks.type->layout;
}

Layout Judge::gguf(Entry& e, std::string_view type) {
  const auto elements = natural(e, kElemsPerBlock, true), bytes = natural(e, kBlockBytes, true);
  if (!elements || !bytes) return Layout::structural;
  const std::uint64_t all = *base::element_count(e.shape());
  if (!takes_attribute(e, *elements != 0 && all % *elements == 0, kElemsPerBlock, core::Said("a divisor of ", all)) ||
      !takes_attribute(e, *bytes != 0, kBlockBytes, "at least 1") || !exactly(e, {kData}))
    return Layout::structural;
  PartEntry& data = e.parts.front();
  if (data.has_type || data.storage != DType::u8) {
    reject(rules::kLayoutDtype, e, data, "u8", data.type_name());
    return Layout::structural;
  }
  if (!demand_bytes(e, data, base::checked_mul(all / *elements, *bytes), rules::kLayoutSize) || unsupported_)
    return Layout::structural;
  AsBlocks blocks = from_gguf(type, std::move(e.attributes));
  e.attributes = std::move(blocks.attributes);
  if (!blocks.type) {
    const bool listed = std::ranges::find(kGgufTypes, type) != kGgufTypes.end();
    mark_unsupported(listed ? rules::kParameters : rules::kUnknownLayout, e, e.at,
                     listed ? "blocks of other sizes than GGML's" : e.layout);
    return Layout::structural;
  }
  block_type_ = blocks.type;
  return blocks.type->layout;
}

Layout Judge::own_blocks(Entry& e) {
  if (unsupported_) return Layout::structural;
  AsBlocks blocks = from_own(std::move(e.attributes));
  e.attributes = std::move(blocks.attributes);
  if (blocks.type && e.parts.size() == blocks.type->roles.size()) {
    block_type_ = blocks.type;
    return blocks.type->layout;
  }
  mark_unsupported(rules::kUnknownLayout, e, e.at, e.layout);
  return Layout::structural;
}

// Whether the parts and attributes are those of the block type.
void Judge::check_blocks(Entry& e) {
  std::array<DType, codecs::kMaxRoles> dtypes{};
  bool whole = true;
  for (std::size_t i = 0; i < block_type_->roles.size(); ++i) {
    const PartEntry* const p = e.find(block_type_->roles[i]);
    whole = whole && p;
    if (p) dtypes[i] = p->logical;
  }
  const codecs::BlockForm form =
      core::block_form(*block_type_, e.shape(), e.attributes, std::span(dtypes).first(block_type_->roles.size()));
  std::string problem = whole ? codecs::block_problem(form) : "its parts have other names than its type requires";
  for (std::size_t i = 0; problem.empty() && i < block_type_->roles.size(); ++i)
    if (e.find(block_type_->roles[i])->size != codecs::block_part_size(form, i))
      problem = "the parts do not have the sizes that its type requires";
  if (!problem.empty()) mark_unsupported(rules::kParameters, e, e.at, problem);
}

}  // namespace weighbridge::ztensor2

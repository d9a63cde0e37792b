// SPDX-License-Identifier: Apache-2.0
#include "formats/ztensor/v2/profiles.h"

#include <algorithm>
#include <span>

#include "base/checked.h"
#include "codecs/dequant.h"
#include "core/payload/elements.h"
#include "formats/ztensor/v2/layout.h"

namespace weighbridge::ztensor2 {
namespace {

constexpr std::string_view kGroupId = "zt.group", kRowsId = "slm.q8_0", kQuantId = "zt.quant",
                           kQuantZerosId = "zt.quant_zeros", kMxId = "zt.mx", kGgml = "ggml.",
                           kPacked = "packed_weight";

void drop(std::vector<Value::Entry>& attributes, std::span<const std::string_view> keys) {
  std::erase_if(attributes, [&](const Value::Entry& e) { return std::ranges::find(keys, e.first) != keys.end(); });
}

// The manifest's attributes instead of the model's: first these, then those that a user added.
std::vector<Value::Entry> with(std::vector<Value::Entry> first, Attributes rest,
                               std::initializer_list<std::string_view> without) {
  for (const Value::Entry& e : rest)
    if (std::ranges::find(without, e.first) == without.end()) first.push_back(e);
  return first;
}

bool is_unsigned_word(DType dtype) noexcept {
  return dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
}

constexpr std::string_view kBlockSizes[] = {kElemsPerBlock, kBlockBytes};

Value text_of(std::string_view value) { return Value::text(std::string(value)); }

Value packing_of(DType word, bool msb_first, std::uint64_t per_word) {
  return Value::map({{std::string(kWord), text_of(name(word))},
                     {std::string(kOrder), text_of(msb_first ? "msb_first" : "lsb_first")},
                     {std::string(kPerWord), Value::integer(per_word)}});
}

bool takes_key(std::span<const Value::Entry> attributes, std::string_view key) noexcept {
  return find(attributes, key) == nullptr;
}

// zTensor 1.x's groups run along the rows of a matrix (its III.4), which is axis 0.
std::optional<AsObject> group_to_object(const Tensor& tensor) {
  const codecs::BlockForm form = core::block_form(tensor);
  const DType word = form.packing.word;
  // Codes of the profile are signed if each is a word of a signed type; 1.x has no signed codes.
  const bool plain = is_unsigned_word(word) || form.packing.codes_per_word > 1;
  if (!codecs::block_problem(form).empty() || !plain || form.rows % form.packing.codes_per_word != 0)
    return std::nullopt;
  constexpr DType kUnsigned[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  DType unsigned_word = word;
  for (const DType each : kUnsigned)
    if (info(each).bits == info(word).bits) unsigned_word = each;
  const Value* const stated = tensor.attribute(kScaleForm);
  const std::string_view factors = stated && stated->as_text() == kF16Factors ? kF16Factors : kF32Factors;
  return AsObject{std::string(kQuantGroup),
                  with({{std::string(kAxis), Value::integer(std::uint64_t{0})},
                        {std::string(kBits), Value::integer(std::uint64_t{form.bits})},
                        {std::string(kGroupSize), Value::integer(form.group)},
                        {std::string(kPacking), packing_of(unsigned_word, false, form.packing.codes_per_word)},
                        {std::string(kScaleForm), text_of(factors)},
                        {std::string(kZeroPoint), Value::map({{std::string(kForm), text_of("tensor")},
                                                              {std::string(kPacking), text_of("plain")}})}},
                       tensor.attributes(), {kBits, kGroupSize, kPacking, kAxis, kScaleForm, kZeroPoint})};
}

std::optional<AsObject> rows_to_object(const Tensor& tensor) {
  const codecs::BlockForm form = core::block_form(tensor);
  if (form.rank != 2 || form.columns == 0 || !codecs::block_problem(form).empty()) return std::nullopt;
  return AsObject{
      std::string(kQuantGroup),
      with({{std::string(kAxis), Value::integer(std::uint64_t{1})},
            {std::string(kBits), Value::integer(std::uint64_t{8})},
            {std::string(kGroupSize), Value::integer(form.columns)},
            {std::string(kPacking), packing_of(DType::u8, false, 1)},
            {std::string(kScaleForm), text_of(kF32Factors)},
            {std::string(kZeroPoint), Value::map({{std::string(kForm), text_of("none")}})}},
           tensor.attributes(), {kType, kBlockSize, kAxis, kBits, kGroupSize, kPacking, kScaleForm, kZeroPoint})};
}

bool is_listed(std::string_view gguf_type) noexcept {
  return std::ranges::find(kGgufTypes, gguf_type) != kGgufTypes.end();
}

}  // namespace

AsBlocks from_quant_group(const QuantGroup& q, const QuantParts& parts, Shape shape,
                          std::vector<Value::Entry> attributes) {
  constexpr std::string_view kOwn[] = {kAxis, kBits, kGroupSize, kPacking, kScaleForm, kZeroPoint};
  const bool factors = q.scale_form == kF32Factors, half = q.scale_form == kF16Factors;
  const bool same_word = parts.data == q.word || q.per_word > 1;
  if (shape.size() == 2 && q.axis == 0 && !q.msb_first && (factors || half) && q.zero_form == "tensor" &&
      q.zero_packing == "plain" && same_word && q.group > 0 && shape[0] % q.per_word == 0) {
    const std::string_view from_attributes[] = {kAxis,    kBits,      kGroupSize,
                                                kPacking, kZeroPoint, factors ? kScaleForm : kAxis};
    drop(attributes, from_attributes);
    attributes.insert(
        attributes.begin(),
        {{std::string(kBits), Value::integer(q.bits)},
         {std::string(kGroupSize), Value::integer(q.group)},
         {std::string(kPacking), Value::text(std::to_string(q.per_word) + "_per_" + std::string(name(parts.data)))}});
    return {find_block_type(kGroupId), std::move(attributes)};
  }
  if (shape.size() == 2 && q.axis == 1 && q.bits == 8 && q.per_word == 1 && parts.data == DType::i8 &&
      q.group == shape[1] && q.group > 0 && factors && parts.scales == DType::f32 && q.zero_form == "none" &&
      !q.msb_first && takes_key(attributes, kType) && takes_key(attributes, kBlockSize)) {
    drop(attributes, kOwn);
    attributes.insert(attributes.begin(),
                      {{std::string(kType), text_of("q8_0")}, {std::string(kBlockSize), Value::integer(q.group)}});
    return {find_block_type(kRowsId), std::move(attributes)};
  }
  const bool plain_zeros = q.zero_form != "tensor" || q.zero_packing == "plain";
  if (q.axis + 1 != shape.size() || !plain_zeros || !takes_key(attributes, kType))
    return {nullptr, std::move(attributes)};
  const BlockTypeInfo* const type = find_block_type(q.zero_form == "tensor" ? kQuantZerosId : kQuantId);
  attributes.emplace(attributes.begin(), std::string(kType), text_of(type->type_attribute));
  return {type, std::move(attributes)};
}

AsBlocks from_mx(std::vector<Value::Entry> attributes) {
  if (!takes_key(attributes, kType)) return {nullptr, std::move(attributes)};
  attributes.emplace(attributes.begin(), std::string(kType), text_of(kMxId));
  return {find_block_type(kMxId), std::move(attributes)};
}

AsBlocks from_gguf(std::string_view type, std::vector<Value::Entry> attributes) {
  const std::string id = std::string(kGgml) + std::string(type);
  const BlockTypeInfo* const row = find_block_type(id);
  if (!row || !is_listed(type) || !takes_key(attributes, kType)) return {nullptr, std::move(attributes)};
  const Value *const elements = find(attributes, kElemsPerBlock), *const bytes = find(attributes, kBlockBytes);
  if (elements->as_u64() != row->block_elements || bytes->as_u64() != row->block_bytes)
    return {nullptr, std::move(attributes)};
  drop(attributes, kBlockSizes);
  attributes.emplace(attributes.begin(), std::string(kType), text_of(row->type_attribute));
  return {row, std::move(attributes)};
}

AsBlocks from_own(std::vector<Value::Entry> attributes) {
  const auto at = std::ranges::find(attributes, kType, &Value::Entry::first);
  const auto id = at == attributes.end() ? std::nullopt : at->second.as_text();
  const BlockTypeInfo* const row = id ? find_block_type(*id) : nullptr;
  if (!row) return {nullptr, std::move(attributes)};
  drop(attributes, kBlockSizes);
  const auto own = std::ranges::find(attributes, kType, &Value::Entry::first);
  if (row->type_attribute.empty())
    attributes.erase(own);
  else
    own->second = text_of(row->type_attribute);
  return {row, std::move(attributes)};
}

AsObject to_object(const Tensor& tensor) {
  const Attributes all = tensor.attributes();
  std::vector<Value::Entry> kept(all.begin(), all.end());
  switch (tensor.layout()) {
    case Layout::dense: return {std::string(kDense), std::move(kept)};
    case Layout::sparse_csr: return {std::string(kCsr), std::move(kept)};
    case Layout::sparse_coo: return {std::string(kCoo), std::move(kept)};
    case Layout::structural: return {std::string(tensor.layout_name()), std::move(kept)};
    default: break;
  }
  const BlockTypeInfo* const type = tensor.block_type();
  if (!type) return {std::string(tensor.layout_name()), std::move(kept)};
  if (type->id == kGroupId)
    if (auto object = group_to_object(tensor)) return *std::move(object);
  if (type->id == kRowsId)
    if (auto object = rows_to_object(tensor)) return *std::move(object);
  if (type->id == kQuantId || type->id == kQuantZerosId) return {std::string(kQuantGroup), with({}, all, {kType})};
  if (type->id == kMxId) return {std::string(kMx), with({}, all, {kType})};
  std::vector<Value::Entry> sizes;
  if (type->block_bytes != 0)
    sizes = {{std::string(kElemsPerBlock), Value::integer(std::uint64_t{type->block_elements})},
             {std::string(kBlockBytes), Value::integer(std::uint64_t{type->block_bytes})}};
  if (type->id.starts_with(kGgml) && is_listed(type->id.substr(kGgml.size())))
    return {std::string(kGgufPrefix) + std::string(type->id.substr(kGgml.size())) + std::string(kFirstVersion),
            with(std::move(sizes), all, {kType, kElemsPerBlock, kBlockBytes})};
  sizes.insert(sizes.begin(), {std::string(kType), text_of(type->id)});
  return {std::string(kOwnBlocks), with(std::move(sizes), all, {kType, kElemsPerBlock, kBlockBytes})};
}

std::string_view part_name(const Tensor& tensor, const AsObject& object, std::string_view role) {
  return object.layout == kQuantGroup && tensor.layout() == Layout::quantized_group && role == kPacked ? kData : role;
}

}  // namespace weighbridge::ztensor2

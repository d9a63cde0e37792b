// SPDX-License-Identifier: Apache-2.0
// Items of a plan. Subjects are formatted only if there is an item, so most tensors need no allocation.
#include "core/writing/plan_items.h"
#include "core/writing/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/checked.h"
#include "base/utf8.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "weighbridge/scheme.h"

namespace weighbridge {

// Every format calls its rule about an array of texts FORMAT/text, and one about objects FORMAT/object.
bool is_numeric(const Tensor& tensor) noexcept {
  const Finding* const why = tensor.unsupported();
  return why == nullptr || !(why->rule.ends_with("/text") || why->rule.ends_with("/object"));
}

}  // namespace weighbridge

namespace weighbridge::core {

namespace {

bool is_whole(DType dtype) noexcept {
  return info(dtype).kind == DTypeKind::unsigned_integer || info(dtype).kind == DTypeKind::signed_integer;
}

}  // namespace

DType target_dtype(const Tensor& tensor, const Options& options) {
  if (const DType decided = write_as(tensor); decided != DType::unknown) return decided;
  const DType dtype = tensor.dtype();
  const DType to = is_whole(dtype)                       ? options.cast_int
                   : info(dtype).kind == DTypeKind::real ? options.cast
                                                         : DType::unknown;
  return to != DType::unknown ? to : dtype;
}

void drop_extra(PlanItems plan_items, const Model& model) {
  for (const auto& [key, value] : model.extra())
    plan_items.lose(LossKind::extra, indexed("extra", key), value.to_text(), "dropped");
}

void drop_extra(PlanItems plan_items, const Tensor& tensor) {
  for (const auto& [key, value] : tensor.extra())
    plan_items.lose(LossKind::extra, subject(tensor) + "." + indexed("extra", key), value.to_text(), "dropped");
}

void drop_extra(PlanItems plan_items, const Tensor& tensor, const Part& part) {
  for (const auto& [key, value] : part.extra())
    plan_items.lose(LossKind::extra, subject(tensor, part) + "." + indexed("extra", key), value.to_text(), "dropped");
}

void drop_attributes(PlanItems plan_items, const Tensor& tensor) {
  for (const auto& [key, value] : tensor.attributes()) {
    if (is_packing_attribute(tensor, key)) continue;
    plan_items.lose(LossKind::attribute, subject(tensor) + "." + indexed("attributes", key), value.to_text(),
                    "dropped");
  }
}

void drop_attributes(PlanItems plan_items, const Model& model, std::string_view why) {
  for (const auto& [key, value] : model.attributes())
    plan_items.lose(LossKind::attribute, indexed("attributes", key), value.to_text(), "dropped: " + std::string(why));
}

void drop_tokenizer(PlanItems plan_items, const Model& model, std::string_view container_has) {
  if (model.tokenizer())
    plan_items.lose(LossKind::tokenizer, "tokenizer", "a tokenizer",
                    "dropped: " + std::string(container_has) + " no place for it");
}

bool check_known(PlanItems plan_items, const Tensor& tensor, std::string_view container) {
  if (const Finding* why = tensor.unsupported()) {
    plan_items.block_uninterpreted(tensor, subject(tensor), std::string(tensor.type_name()), why->message);
    return false;
  }
  if (!tensor.has_shape()) {
    plan_items.block(LossKind::shape, subject(tensor), "an unknown shape",
                     std::string(container) + " states every shape");
    return false;
  }
  return true;
}

void check_dense(PlanItems plan_items, const Tensor& tensor, DType dtype, std::string_view no_digest) {
  const Layout layout = tensor.layout();
  if (layout != Layout::dense)
    plan_items.lose(LossKind::layout, subject(tensor), std::string(tensor.layout_name()),
                    "dense " + std::string(name(dtype)));
  for (const Part& part : tensor.parts()) {
    drop_extra(plan_items, tensor, part);
    // The dense form of a quantized tensor is f32, for any dtype of its scales.
    if (is_quantized(layout) && (part.role() == "scales" || part.role() == "zeros") && part.dtype() == DType::f64)
      plan_items.lose(LossKind::precision, subject(tensor, part), "f64", "f32");
    if (layout != Layout::dense) continue;
    if (part != tensor.main()) {
      plan_items.lose(LossKind::layout, subject(tensor, part), std::string(part.role()), "dropped");
      continue;
    }
    check_encoding(plan_items, tensor, part, Encoding::raw);
    if (!part.digest().empty())
      plan_items.change(LossKind::extra, subject(tensor, part), std::string(part.digest()), std::string(no_digest));
  }
}

void check_encoding(PlanItems plan_items, const Tensor& tensor, const Part& part, Encoding to) {
  const auto change = [&](std::string from, std::string anew) {
    plan_items.change(LossKind::layout, subject(tensor, part), std::move(from), std::move(anew));
  };
  if (is_coded(part.encoding())) change(std::string(part.encoding_name()), encoding_text(part, to));
  if (part.order() == Order::big && info(part.dtype()).swap_bytes > 1) change("big-endian", "little-endian");
  if (!part.strides().empty()) change("strided", "row-major");
}

DType Planning::cast_of(const Tensor& tensor) const {
  const DType to = target_dtype(tensor);
  return tensor.layout() == Layout::dense && !tensor.unsupported() && to != tensor.dtype() ? to : DType::unknown;
}

void check_cast(PlanItems plan_items, const Tensor& tensor, DType to) {
  const DType from = tensor.dtype();
  if (from == to) return;
  const bool wider = info(to).bits > info(from).bits && info(from).bits >= 16;
  if (wider || (is_whole(from) && is_whole(to)))  // a number that does not fit is an error
    plan_items.change(LossKind::dtype, subject(tensor), std::string(name(from)), std::string(name(to)));
  else
    plan_items.lose(LossKind::precision, subject(tensor), std::string(name(from)), std::string(name(to)));
}

void name_copies(PlanItems plan_items, const Model& model, std::span<const std::uint32_t> tensors) {
  std::vector<Range> stored;
  stored.reserve(tensors.size());
  for (const std::uint32_t i : tensors) {
    const Tensor tensor = model[i];
    if (tensor.part_count() == 0) continue;
    if (const auto extent = tensor.main().extent())
      stored.push_back({extent->source, extent->offset, extent->length, i});
  }
  std::uint32_t first = kNone;
  Extents(std::move(stored)).walk([&](const Range& range, Relation relation, const Range* furthest) {
    if (relation != Relation::alias) first = range.item;
    if (relation == Relation::alias) name_copy(plan_items, model[range.item], model[first]);
    if (relation == Relation::overlap) name_partial_copy(plan_items, model[range.item], model[furthest->item]);
  });
}

void name_copies(PlanItems plan_items, const Model& model) {
  std::vector<std::uint32_t> all(model.size());
  std::iota(all.begin(), all.end(), 0U);
  name_copies(plan_items, model, all);
}

void name_copy(PlanItems plan_items, const Tensor& tensor, const Tensor& of) {
  plan_items.lose(LossKind::alias, subject(tensor), "the bytes of " + subject(of), "a copy of them");
}

void name_partial_copy(PlanItems plan_items, const Tensor& tensor, const Tensor& with) {
  plan_items.lose(LossKind::alias, subject(tensor), "some of the bytes of " + subject(with), "a copy of them");
}

std::string PlacingPlanning::subject_of(const Payload& payload) const {
  return subject_ == Subject::part ? subject(payload.tensor, payload.tensor.part(payload.part))
                                   : subject(payload.tensor);
}

void PlacingPlanning::begin_payloads(std::uint64_t at) {
  at_ = at;
  sharing_ = sharing(model_);
  payload_of_.assign(sharing_.first.size(), kNone);
  out_.tensors.reserve(model_.size());
  out_.payloads.reserve(payload_of_.size());
}

std::optional<std::uint32_t> PlacingPlanning::shared_payload(const Payload& payload, std::uint32_t part,
                                                             bool one_blob) {
  using Form = Payload::Form;
  const std::uint32_t twin = payload_of_[sharing_.first[part]];
  if (twin == kNone) return std::nullopt;
  const Payload& other = out_.payloads[twin];
  const bool copied = other.form == Form::stored || other.form == Form::logical;
  if (!options_.canonical && copied && other.form == payload.form && other.encoding == payload.encoding &&
      other.logical_size == payload.logical_size &&
      (one_blob || (other.dtype == payload.dtype &&
                    same_elements(other.tensor.part(other.part), payload.tensor.part(payload.part)))))
    return payload_of_[part] = twin;
  plan_items_.lose(LossKind::alias, subject_of(payload), "the bytes of " + subject(other.tensor), "a copy of them");
  return std::nullopt;
}

std::optional<std::uint32_t> PlacingPlanning::append_payload(Payload payload, std::uint32_t part) {
  if (const std::uint32_t partly = sharing_.partly[part]; partly != kNone)
    plan_items_.lose(LossKind::alias, subject_of(payload),
                     "some of the bytes of " + subject(model_[sharing_.tensor[partly]]), "a copy of them");
  const auto start = base::align_up(at_, payload.alignment);
  const auto end = start ? base::checked_add(*start, payload.stored_size) : std::nullopt;
  if (!end || *end > kMaxSum) {
    plan_items_.block(LossKind::shape, subject(payload.tensor), "its size", "more than 2^64 - 1 bytes in all");
    return std::nullopt;
  }
  at_ = *end;
  out_.payloads.push_back(std::move(payload));
  return payload_of_[part] = static_cast<std::uint32_t>(out_.payloads.size() - 1);
}

std::uint32_t main_part(const Tensor& tensor) {
  std::uint32_t part = 0;
  while (tensor.part(part) != tensor.main()) ++part;
  return part;
}

Payload dense_payload(const WriteLayout& out, const Tensor& tensor, DType dtype, std::uint64_t size) {
  const bool as_it_is = tensor.layout() == Layout::dense && dtype == tensor.dtype();
  Payload payload;
  payload.form = as_it_is ? Payload::Form::logical : Payload::Form::dense;
  payload.dtype = dtype;
  payload.tensor = tensor;
  if (as_it_is) payload.part = main_part(tensor);
  payload.out_tensor = static_cast<std::uint32_t>(out.tensors.size());
  payload.role = "data";
  payload.logical_size = payload.stored_size = size;
  return payload;
}

void encode_payload(Payload& payload, const Options& options) {
  payload.encoding =
      options.encoding.empty() || payload.logical_size == 0 ? Encoding::raw : encoding_named(options.encoding);
  const codecs::Codec* const codec = codec_of(payload.encoding);
  payload.stored_size = codec ? codec->bound(payload.logical_size + payload.stream_prefix.size()) : 0;
}

std::string encoding_text(const Part& from, Encoding to) {
  const std::string text(name(to));
  return to == from.encoding() ? text + ", compressed anew" : text;
}

std::string type_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::integer:
    case Value::Kind::real: return std::string(name(value.type()));
    case Value::Kind::boolean: return "boolean";
    case Value::Kind::bytes: return "bytes";
    case Value::Kind::map: return "map";
    case Value::Kind::list:
    case Value::Kind::texts:
    case Value::Kind::numbers: return "list";
    default: return "null";
  }
}

bool can_be_text(std::string_view key, const Value& value, std::string_view text) {
  return value.kind() != Value::Kind::foreign && base::is_utf8(key) && base::is_utf8(text);
}

PlannedPayloads plan_payloads(const WriteLayout& out, std::uint64_t at) {
  PlannedPayloads planned;
  planned.stored.resize(out.payloads.size());
  for (std::size_t i = 0; i < out.payloads.size(); ++i) {
    const Payload& p = out.payloads[i];
    at = *base::align_up(at, p.alignment) + p.preamble_size;
    planned.stored[i] = {out.size_exact ? at : UINT64_MAX, out.size_exact ? p.stored_size : UINT64_MAX,
                         placeholder(p.digest)};
    at += p.stored_size;
  }
  planned.end = at;
  return planned;
}

void fill_with(Payload& payload, const ElementsPtr& elements) {
  payload.form = Payload::Form::generated;
  if (!divides(*elements, kPayloadRange)) {
    payload.make = [elements](const Context& context, const std::function<void(std::span<const std::byte>)>& sink) {
      elements->stream(context, [&](std::span<const std::byte> piece) { return sink(piece), true; });
    };
    return;
  }
  payload.make_range = [elements](const Context& context, std::uint64_t offset, std::span<std::byte> out) {
    const DType dtype = elements->dtype();
    const std::uint64_t first = elements_in(offset, dtype), skip = offset - bytes_of(dtype, first);
    const std::uint64_t width = std::max<std::uint64_t>(info(dtype).bits / 8, 1);
    const std::uint64_t n = std::min(elements_in(skip + out.size() + width - 1, dtype), elements->count() - first);
    if (bytes_of(dtype, n) == out.size()) return elements->read(first, n, out, context);
    std::vector<std::byte> whole(bytes_of(dtype, n));  // the range begins or ends within an element
    elements->read(first, n, whole, context);
    std::memcpy(out.data(), whole.data() + skip, out.size());
  };
}

std::vector<const WriteLayout*> files_of(const WriteLayout& layout) {
  if (!layout.folder) return {&layout};
  std::vector<const WriteLayout*> out;
  for (const OutFile& file : layout.folder->payloads) out.push_back(&file.layout);
  return out;
}

}  // namespace weighbridge::core

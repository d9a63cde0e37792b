// SPDX-License-Identifier: Apache-2.0
// Model to zTensor 1.x. Payloads are laid out in the given order, each at a multiple of 64. The manifest follows, with
// keys in the order of reading Y6. From .zt to .zt, stored bytes are copied verbatim. Equal extents are stored once and
// shared (G6).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/view.h"
#include "core/payload/elements.h"
#include "core/payload/extents.h"
#include "core/payload/part_digest.h"
#include "core/payload/payload.h"
#include "core/payload/widen.h"
#include "core/writing/layout.h"
#include "core/writing/plan_items.h"
#include "formats/ztensor/cbor_value.h"
#include "formats/ztensor/v1/format.h"
#include "formats/ztensor/v1/layout.h"
#include "formats/ztensor/v1/plan.h"

namespace weighbridge::ztensor1 {
namespace {

using core::digest_of, core::indexed, core::subject;
using Form = core::Payload::Form;

bool has_layout(Layout layout) noexcept {
  return layout == Layout::dense || layout == Layout::sparse_csr || layout == Layout::sparse_coo ||
         is_quantized(layout) || layout == Layout::structural;
}

std::string version_of(const Model& model, const Options& options) {
  if (options.version == "1.1" || options.version == "1.1.0") return "1.1.0";
  if (options.version == "1.2" || options.version == "1.2.0") return "1.2.0";
  return model.format() == "zt" && !options.canonical && !model.version().empty() ? std::string(model.version())
                                                                                  : "1.1.0";
}

}  // namespace

Planner::Planner(const Model& model, const Options& options, std::string version)
    : Planning(model, options, Subject::part),
      manifest_(std::make_shared<Manifest>()),
      from_zt_(!options.canonical && (model.format() == "zt" || model.format().empty())) {
  manifest_->keys_of_1_2 = has_keys_of_1_2(version);
  manifest_->version = std::move(version);
  manifest_->keep = out_.owner;
}

// Whether the stored bytes can be copied to the file.
bool Planner::stores(const Tensor& tensor, const Part& part) const {
  if (!from_zt_ || !part.extent() || !part.strides().empty() || core::cut_of(part)) return false;
  if (part.encoding() == Encoding::unknown) return true;
  if (part.order() != Order::little && info(part.dtype()).swap_bytes > 1) return false;
  // Bools of other containers may be any byte.
  if (part.dtype() == DType::boolean && part.encoding() == Encoding::raw && model_.format().empty()) return false;
  if (part.encoding() == Encoding::raw && part.extent()->length != part.size()) return false;
  return options_.encoding.empty() || options_.encoding == name(part.encoding()) ||
         (options_.encoding != name(Encoding::raw) && !may_compress(tensor, part));
}

// Version 1.1 does not state the decoded size of a frame, so it must follow from shape, dtype and format.
bool Planner::may_compress(const Tensor& tensor, const Part& part) const {
  if (manifest_->keys_of_1_2) return true;
  constexpr std::string_view kSized[] = {kData, kValues, kIndices, kIndptr, kCoords, kPackedWeight, kScales, kZeros};
  return !tensor.unsupported() && std::ranges::find(kSized, part.role()) != std::end(kSized);
}

// Whether the tensor can be written at all.
bool Planner::judge(const Tensor& tensor) {
  const std::size_t before = out_.blockers.size();
  if (!tensor.has_shape())
    plan_items_.block(LossKind::shape, subject(tensor), "an unknown shape", "every object states its shape");
  if (!base::is_utf8(tensor.name()))
    plan_items_.block(LossKind::name, subject(tensor), "a name that is not UTF-8", "names are UTF-8");
  const BlockTypeInfo* const blocks = tensor.block_type();
  if (!has_layout(tensor.layout()) ||
      (blocks && blocks->layout == Layout::quantized_block && blocks->id.starts_with("zt.")))
    plan_items_.block(LossKind::layout, subject(tensor), std::string(tensor.layout_name()),
                      "no layout that zTensor 1.x is written with");
  if (tensor.unsupported() && !from_zt_)
    plan_items_.block_uninterpreted(tensor, subject(tensor), std::string(tensor.type_name()),
                                    tensor.unsupported()->message);
  if (out_.blockers.size() != before || !check_parts(tensor, cast_of(tensor))) return false;
  check_metadata(tensor);
  return true;
}

bool Planner::check_parts(const Tensor& tensor, DType cast) {
  const std::size_t before = out_.blockers.size();
  if (cast != DType::unknown) {
    core::check_cast(plan_items_, tensor, cast);
    return true;
  }
  for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
    const Part part = tensor.part(i);
    check_part(tensor, part, holds(part.dtype()), stores(tensor, part), "no dtype of zTensor 1.x: a cast can make one");
  }
  return out_.blockers.size() == before;
}

void Planner::check_metadata(const Tensor& tensor) {
  const auto attributes = tensor.attributes();
  if (!attributes.empty()) {
    encode_attributes(attributes, false, [&](LossKind kind, const Value::Entry& e, std::string_view to) {
      plan_items_.lose(kind, subject(tensor) + "." + indexed("attributes", e.first), e.second.to_text(),
                       std::string(to));
    });
  }
  for (const auto& [key, value] : tensor.extra()) {
    if (key == kShape || key == kFormatKey || key == kComponents || key == kAttributes ||
        (value.kind() == Value::Kind::foreign && value.grammar() != "cbor"))
      plan_items_.lose(LossKind::extra, subject(tensor) + "." + indexed("extra", key), value.to_text(), "dropped");
  }
}

// The integer type of indices is not part of the content.
void Planner::widen(core::Payload& p, OutComponent& c) {
  plan_items_.change(LossKind::dtype, subject(p.tensor, c.part), std::string(name(c.part.dtype())), "u64");
  p.form = Form::generated;
  core::fill_with(p, core::widened(c.part));
  p.logical_size = base::checked_mul(c.part.count(), 8).value_or(core::kMaxSum);
  c.dtype = p.dtype = DType::u64;
}

Planner::PartPlan Planner::plan_part(const Tensor& tensor, std::uint32_t index, DType cast) {
  PartPlan plan;
  core::Payload& p = plan.payload;
  OutComponent& c = plan.component;
  c.part = tensor.part(index);
  p.tensor = tensor;
  p.part = index;
  p.alignment = static_cast<std::uint32_t>(kAlignment);
  p.role = c.role = c.part.role();
  p.digest = digest_of(options_.digest);
  c.dtype = p.dtype = cast != DType::unknown ? cast : c.part.dtype();
  if (cast != DType::unknown) {
    p.form = Form::dense;
    p.logical_size = packed_size(cast, base::element_count(tensor.shape()).value_or(0)).value_or(core::kMaxSum);
  } else {
    p.form = stores(tensor, c.part) ? Form::stored : Form::logical;
    p.logical_size = c.part.size();
    if (options_.canonical && core::is_index(tensor.layout(), c.part.role()) && c.dtype != DType::u64) widen(p, c);
  }
  if (p.form == Form::stored) {
    p.encoding = c.part.encoding();
    p.stored_size = c.part.extent()->length;
    c.keep_extra = true;
    // Models built in memory may hold parts of zTensor 0.1, whose digests may have a spelling that this format refuses.
    c.keep_digest = options_.digest.empty() && core::parse_digest(c.part.digest()).problem.empty();
  } else {
    core::encode_payload(p, may_compress(tensor, c.part) ? options_ : Options{});
    out_.size_exact &= p.encoding == Encoding::raw;
  }
  c.encoding = p.encoding;
  c.size = p.logical_size;
  return plan;
}

// False if the file would exceed 2^64 bytes.
bool Planner::place_part(const Tensor& tensor, std::uint32_t index, DType cast) {
  PartPlan plan = plan_part(tensor, index, cast);
  name_changes(plan.payload, plan.component.keep_digest, "in a component of its own");
  const std::uint32_t ordinal = ordinal_++;
  plan.payload.out_tensor = static_cast<std::uint32_t>(out_.tensors.size());
  auto payload = shared_payload(plan.payload, ordinal);
  if (!payload) payload = append_payload(std::move(plan.payload), ordinal);
  if (!payload) return false;
  plan.component.payload = *payload;
  manifest_->components.push_back(std::move(plan.component));
  return true;
}

void Planner::place(const Tensor& tensor) {
  OutObject object;
  object.name = tensor.name();
  object.format = tensor.layout_name();
  object.from = tensor;
  object.first_component = static_cast<std::uint32_t>(manifest_->components.size());
  object.component_count = tensor.part_count();
  const DType cast = cast_of(tensor);
  const std::size_t own = out_.payloads.size();
  for (std::uint32_t i = 0; i < tensor.part_count(); ++i) {
    const bool casts = cast != DType::unknown && tensor.part(i) == tensor.main();
    if (!place_part(tensor, i, casts ? cast : DType::unknown)) return;
  }
  const auto first = manifest_->components.begin() + static_cast<std::ptrdiff_t>(object.first_component);
  std::sort(first, manifest_->components.end(),
            [](const OutComponent& a, const OutComponent& b) { return a.role < b.role; });
  manifest_->objects.push_back(object);
  out_.tensors.push_back(
      {.name = object.name,
       .from = tensor,
       .layout = tensor.layout(),
       .dtype = cast != DType::unknown ? cast : tensor.dtype(),
       .shared_parts = tensor.part_count() - static_cast<std::uint32_t>(out_.payloads.size() - own)});
}

void Planner::place_objects(std::uint64_t begin) {
  bool possible = out_.blockers.empty();
  for (std::uint32_t i = 0; i < model_.size(); ++i) possible &= judge(model_[i]);
  if (!possible) return;
  begin_payloads(begin);
  manifest_->components.reserve(payload_of_.size());
  manifest_->objects.reserve(model_.size());
  for (std::uint32_t i = 0; i < model_.size() && out_.blockers.empty(); ++i) place(model_[i]);
  auto& objects = manifest_->objects;
  const auto before = [](const OutObject& a, const OutObject& b) { return a.name < b.name; };
  if (out_.blockers.empty() && !std::is_sorted(objects.begin(), objects.end(), before)) {
    std::vector<OutObject> by_name;
    by_name.reserve(objects.size());
    for (const std::uint32_t i : core::by_name(model_)) by_name.push_back(objects[i]);
    objects = std::move(by_name);
  }
}

void Planner::place_root(const Model* target) {
  std::vector<Value::Entry> entries;
  auto tokenizer = model_.tokenizer();
  if (target) {
    const auto old = target->attributes();
    entries.assign(old.begin(), old.end());
    if (target->tokenizer()) {
      if (tokenizer && *tokenizer != *target->tokenizer())
        plan_items_.lose(LossKind::tokenizer, "tokenizer", "a tokenizer", "dropped: the file has another one");
      tokenizer = target->tokenizer();
    }
  }
  for (const auto& [key, value] : model_.attributes()) {
    const Value* const there = target ? target->attribute(key) : nullptr;
    if (!there)
      entries.emplace_back(key, value);
    else if (!(*there == value))
      plan_items_.lose(LossKind::attribute, indexed("attributes", key), value.to_text(),
                       "dropped: the file has another value for it");
  }
  add_tokenizer(entries, tokenizer);
  manifest_->attributes = encode_attributes(
      entries, !manifest_->keys_of_1_2, [&](LossKind kind, const Value::Entry& e, std::string_view to) {
        plan_items_.lose(kind, indexed("attributes", e.first), e.second.to_text(), std::string(to));
      });
  std::vector<const Value::Entry*> extra;
  const Attributes older = target ? target->extra() : Attributes();
  const auto is_own = [](const Value::Entry& e) {
    return e.first == kVersion || e.first == kObjects || e.first == kAttributes;
  };
  for (const Value::Entry& e : older) {
    if (is_own(e))
      plan_items_.lose(LossKind::extra, indexed("extra", e.first), e.second.to_text(), "dropped");
    else
      extra.push_back(&e);
  }
  for (const Value::Entry& e : model_.extra()) {
    const Value* const there = older.find(e.first);
    const bool other_grammar = e.second.kind() == Value::Kind::foreign && e.second.grammar() != "cbor";
    if (is_own(e) || other_grammar || (there && !(*there == e.second)))
      plan_items_.lose(LossKind::extra, indexed("extra", e.first), e.second.to_text(), "dropped");
    else if (!there)
      extra.push_back(&e);
  }
  std::sort(extra.begin(), extra.end(),
            [](const Value::Entry* a, const Value::Entry* b) { return a->first < b->first; });
  for (const Value::Entry* e : extra) {
    wire::CborWriter item;
    ztensor::write_value(item, e->second);
    manifest_->extra.emplace_back(e->first, item.take());
  }
}

core::WriteLayout Planner::finish() {
  out_.owner = manifest_;
  if (out_.blockers.empty()) add_tail(manifest_);
  return std::move(out_);
}

core::WriteLayout layout(const Model& model, const Options& options, const Context&) {
  Planner planner(model, options, version_of(model, options));
  planner.out().head = kMagic;
  planner.place_root(nullptr);
  planner.place_objects(kMagicSize);
  return planner.finish();
}

}  // namespace weighbridge::ztensor1

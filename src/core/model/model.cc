// SPDX-License-Identifier: Apache-2.0
// The members of Model, Tensor and Part, most of which read no payload.
#include "weighbridge/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/state.h"
#include "core/model/words.h"

namespace weighbridge {

namespace {

const core::State& state(const auto& handle) noexcept { return core::Access::state(handle); }
const auto& record(const auto& handle) noexcept { return core::Access::record(handle); }

const core::PartSide* side_of(const Part& part) noexcept {
  const std::uint32_t side = record(part).side;
  return side == core::kNone ? nullptr : &state(part).part_sides[side];
}
const core::TensorSide* side_of(const Tensor& tensor) noexcept {
  const std::uint32_t side = record(tensor).side;
  return side == core::kNone ? nullptr : &state(tensor).tensor_sides[side];
}

void require_index(std::uint32_t size, std::uint32_t i) {
  if (i >= size)
    base::misuse("no-such-tensor", fmt::format("the model has {} tensors; there is no number {}", size, i));
}

}  // namespace

std::string_view name(NoView reason) noexcept {
  switch (reason) {
    case NoView::none: return "none";
    case NoView::encoded: return "encoded";
    case NoView::computed: return "computed";
    case NoView::byte_order: return "byte_order";
    case NoView::strided: return "strided";
    case NoView::misaligned: return "misaligned";
    case NoView::dtype: return "dtype";
    case NoView::layout: return "layout";
    case NoView::not_mappable: return "not_mappable";
  }
  return "not_mappable";
}

// Part

std::string_view Part::role() const& noexcept { return state(*this).roles[record(*this).role]; }
DType Part::dtype() const noexcept { return record(*this).dtype; }
std::string_view Part::dtype_name() const& noexcept {
  const auto& r = record(*this);
  const auto* side = side_of(*this);
  return side && !side->dtype_name.empty() ? std::string_view(side->dtype_name) : weighbridge::name(r.dtype);
}
Shape Part::shape() const& noexcept {
  const auto& r = record(*this);
  return {state(*this).dims.data() + r.dims, r.rank};
}
std::uint64_t Part::count() const noexcept { return base::element_count(shape()).value_or(0); }
std::uint64_t Part::size() const noexcept { return record(*this).size; }
std::span<const std::int64_t> Part::strides() const& noexcept {
  const auto* side = side_of(*this);
  return side && dtype() != DType::unknown ? std::span<const std::int64_t>(side->strides)
                                           : std::span<const std::int64_t>{};
}
Order Part::order() const noexcept { return record(*this).order; }
Encoding Part::encoding() const noexcept { return record(*this).encoding; }
std::string_view Part::encoding_name() const& noexcept {
  const auto& r = record(*this);
  const auto* side = side_of(*this);
  return side && !side->encoding_name.empty() ? std::string_view(side->encoding_name) : weighbridge::name(r.encoding);
}
std::optional<Extent> Part::extent() const noexcept {
  const auto& r = record(*this);
  if (!r.has_extent) return std::nullopt;
  return Extent{r.source, r.offset, r.stored_length};
}
std::string_view Part::digest() const& noexcept {
  const auto* side = side_of(*this);
  return side ? std::string_view(side->digest) : std::string_view{};
}
Attributes Part::extra() const noexcept {
  const auto* side = side_of(*this);
  return side ? core::Access::attributes(s_, side->extra) : Attributes{};
}

namespace {

// The part's stored bytes in place, or the reason why they cannot be used in place. Calls Source::map() once and passes
// on its error.
struct InPlace {
  NoView why = NoView::none;
  Bytes bytes{};
};
InPlace in_place(const Part& part) {
  const auto& r = record(part);
  if (r.encoding == Encoding::computed) return {NoView::computed};
  if (r.encoding != Encoding::raw) return {NoView::encoded};
  if (!part.strides().empty() || core::cut_of(part)) return {NoView::strided};
  const bool native = (r.order == Order::little) == (std::endian::native == std::endian::little);
  if (!native && info(r.dtype).swap_bytes > 1) return {NoView::byte_order};
  if (r.stored_length == 0) return {};
  Bytes bytes = state(part).sources[r.source]->map(r.offset, r.stored_length);
  if (bytes.span.empty()) return {NoView::not_mappable};
  return {NoView::none, std::move(bytes)};
}

// The same for a tensor's elements as this type.
InPlace in_place(const Tensor& tensor, DType as) {
  if (record(tensor).layout != Layout::dense || tensor.part_count() == 0 || tensor.unsupported())
    return {NoView::layout};
  const Part part = tensor.main();
  if (part.dtype() != as) return {NoView::dtype};
  InPlace out = in_place(part);
  if (out.why != NoView::none) return out;
  const std::uint64_t unit = std::max<std::uint64_t>(1, info(as).swap_bytes);
  if (reinterpret_cast<std::uintptr_t>(out.bytes.span.data()) % unit != 0) return {NoView::misaligned};
  return out;
}

// The result of `look`; a source that throws counts as one that cannot be mapped.
template <class Look> NoView why_not(Look look) noexcept {
  try {
    return look().why;
  } catch (...) {
    return NoView::not_mappable;
  }
}

}  // namespace

NoView Part::why_no_view() const noexcept {
  return why_not([&] { return in_place(*this); });
}

Bytes Part::view() const {
  InPlace found = in_place(*this);
  if (found.why != NoView::none) {
    base::misuse("no-view", fmt::format("there is no view of this part's bytes ({}): use stream() or to_dense()",
                                        weighbridge::name(found.why)));
  }
  return std::move(found.bytes);
}

// Tensor

// Uses record(): a handle that was moved from keeps its index but has no tensor.
std::string_view Tensor::name() const& noexcept { return state(*this).text(record(*this).name); }
std::optional<std::uint64_t> Tensor::id() const noexcept {
  const auto* side = side_of(*this);
  return side ? side->id : std::nullopt;
}
bool Tensor::has_shape() const noexcept { return record(*this).has_shape; }
Shape Tensor::shape() const& {
  const auto& r = record(*this);
  if (!r.has_shape) {
    base::unsupported("unsupported/shape", fmt::format("the shape of tensor \"{}\" is not in this file", name()));
  }
  return {state(*this).dims.data() + r.dims, r.rank};
}
Layout Tensor::layout() const noexcept { return record(*this).layout; }
std::string_view Tensor::layout_name() const& noexcept {
  const auto& r = record(*this);
  const auto* side = side_of(*this);
  return side && !side->layout_name.empty() ? std::string_view(side->layout_name) : weighbridge::name(r.layout);
}
DType Tensor::dtype() const noexcept { return record(*this).dtype; }
const BlockTypeInfo* Tensor::block_type() const noexcept {
  const auto* side = side_of(*this);
  return side ? side->block_type : nullptr;
}
std::string_view Tensor::type_name() const& noexcept {
  const auto& r = record(*this);
  const auto* side = side_of(*this);
  if (side && !side->type_name.empty()) return side->type_name;
  return side && side->block_type ? side->block_type->name : weighbridge::name(r.dtype);
}
const Finding* Tensor::unsupported() const& noexcept {
  const auto* side = side_of(*this);
  return side ? side->unsupported.get() : nullptr;
}
const Value* Attributes::find(std::string_view key) const& noexcept {
  return by_key_ ? core::find(*this, *by_key_, key) : nullptr;
}
Attributes Tensor::attributes() const noexcept {
  const auto* side = side_of(*this);
  return side ? core::Access::attributes(s_, side->attributes) : Attributes{};
}
Attributes Tensor::extra() const noexcept {
  const auto* side = side_of(*this);
  return side ? core::Access::attributes(s_, side->extra) : Attributes{};
}
const Value* Tensor::attribute(std::string_view key) const& noexcept {
  const auto* side = side_of(*this);
  return side ? side->attributes.find(key) : nullptr;
}
std::uint32_t Tensor::part_count() const noexcept { return record(*this).part_count; }
Parts Tensor::parts() const noexcept {
  const auto& r = record(*this);
  return Parts(HandleIterator<Part>(Part(s_, r.first_part), r.first_part + r.part_count));
}
std::uint32_t Tensor::part_index(std::uint32_t i) const {
  const auto& r = record(*this);
  if (i >= r.part_count)
    base::misuse("no-such-part", fmt::format("tensor \"{}\" has {} parts, not {}", name(), r.part_count, i + 1));
  return r.first_part + i;
}
Part Tensor::part(std::uint32_t i) const& { return {s_, part_index(i)}; }
Part Tensor::part(std::uint32_t i) && {
  const std::uint32_t index = part_index(i);
  return {std::move(s_), index};
}
std::uint32_t Tensor::find_part(std::string_view role) const noexcept {
  const core::State& s = state(*this);
  const auto& r = record(*this);
  for (std::uint32_t i = r.first_part; i < r.first_part + r.part_count; ++i)
    if (s.roles[s.parts[i].role] == role) return i;
  return core::kNone;
}
Maybe<Part> Tensor::part(std::string_view role) const noexcept {
  const std::uint32_t index = find_part(role);
  if (index == core::kNone) return std::nullopt;
  return Part(s_, index);
}
std::uint32_t Tensor::main_index() const {
  for (const std::string_view role : {"data", "values", "packed_weight"})
    if (const std::uint32_t index = find_part(role); index != core::kNone) return index;
  return part_index(0);
}
Part Tensor::main() const& { return {s_, main_index()}; }
Part Tensor::main() && {
  const std::uint32_t index = main_index();
  return {std::move(s_), index};
}

NoView Tensor::why_no_view(DType as) const noexcept {
  return why_not([&] { return in_place(*this, as); });
}

std::span<const std::byte> Tensor::typed(DType as) const {
  const core::State& s = state(*this);
  const std::uint32_t part = part_count() == 0 ? core::kNone : main_index();
  if (const auto kept = s.mappings.find(part);
      kept && record(*this).layout == Layout::dense && !unsupported() && s.parts[part].dtype == as)
    return *kept;
  InPlace found = in_place(*this, as);
  if (found.why != NoView::none) {
    base::misuse("no-view", fmt::format("tensor \"{}\" has no view as {} ({}): use to_dense()", name(),
                                        weighbridge::name(as), weighbridge::name(found.why)));
  }
  // Nothing else may own the mapping, so the model keeps it.
  return found.bytes.span.empty() ? found.bytes.span : s.mappings.keep(part, std::move(found.bytes));
}

// Model

std::string_view Model::format() const& noexcept { return s_ ? std::string_view(s_->format) : std::string_view{}; }
std::string_view Model::version() const& noexcept { return s_ ? std::string_view(s_->version) : std::string_view{}; }
std::uint32_t Model::size() const noexcept { return s_ ? static_cast<std::uint32_t>(s_->tensors.size()) : 0; }
Tensor Model::operator[](std::uint32_t i) const {
  require_index(size(), i);
  return {s_, i};
}
std::string_view Model::name(std::uint32_t i) const& {
  require_index(size(), i);
  return s_->tensor_name(i);
}
HandleIterator<Tensor> Model::begin() const noexcept { return {Tensor(s_, 0), size()}; }
Maybe<Tensor> Model::find(std::string_view name) const {
  const auto index = s_ ? s_->find(name) : std::nullopt;
  if (!index) return std::nullopt;
  return Tensor(s_, *index);
}
Tensor Model::operator[](std::string_view name) const {
  if (const auto found = find(name)) return *found;
  std::string message = fmt::format("there is no tensor \"{}\"", name);
  if (const auto near = nearest(name); !near.empty()) {
    message += "; the nearest name is \"" + near[0] + "\"";
    for (std::size_t i = 1; i < near.size(); ++i) message += ", \"" + near[i] + "\"";
  }
  base::misuse("no-such-tensor", message);
}
Attributes Model::attributes() const noexcept {
  return s_ ? core::Access::attributes(s_, s_->attributes) : Attributes{};
}
const Value* Model::attribute(std::string_view key) const& noexcept { return s_ ? s_->attributes.find(key) : nullptr; }
Attributes Model::extra() const noexcept { return s_ ? core::Access::attributes(s_, s_->extra) : Attributes{}; }
std::shared_ptr<const Tokenizer> Model::tokenizer() const noexcept {
  return s_ && s_->tokenizer ? std::shared_ptr<const Tokenizer>(s_, &*s_->tokenizer) : nullptr;
}
std::string_view name(Tokenizer::Kind kind) noexcept {
  switch (kind) {
    case Tokenizer::Kind::wordpiece: return "wordpiece";
    case Tokenizer::Kind::byte: return "byte";
    case Tokenizer::Kind::bpe: break;
  }
  return "bpe";
}

Shared<Checksum> Model::checksums() const noexcept {
  return s_ ? core::Access::shared(s_, s_->checksums) : Shared<Checksum>{};
}
std::string_view Model::dtype_label() const& noexcept { return s_ ? std::string_view(s_->dtype_label) : ""; }
std::string_view Model::checksum_form() const noexcept { return s_ ? s_->checksum_form : ""; }
std::uint64_t Model::file_size() const noexcept {
  std::uint64_t bytes = 0;
  if (s_ && s_->composition) {
    for (const Model& model : s_->composition->models) bytes += model.file_size();
    return bytes;
  }
  if (s_ && !s_->format.empty())
    for (const auto& source : s_->sources) {
      bytes += source->size();
      if (!s_->in_several_files) break;
    }
  return bytes;
}
bool Model::checked() const noexcept { return !s_ || s_->checked; }
Shared<std::shared_ptr<const Source>> Model::sources() const noexcept {
  return s_ ? core::Access::shared(s_, s_->sources) : Shared<std::shared_ptr<const Source>>{};
}

std::vector<std::string> Model::nearest(std::string_view wanted, std::size_t maximum) const {
  std::vector<std::string> names;
  for (const std::uint32_t i :
       core::nearest(wanted, size(), maximum, [&](std::uint32_t k) { return s_->tensor_name(k); }))
    names.emplace_back(s_->tensor_name(i));
  return names;
}

}  // namespace weighbridge

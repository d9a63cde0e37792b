// SPDX-License-Identifier: Apache-2.0
// The rules of one object: fields, components, and what each layout requires of them.
#include "formats/ztensor/v1/judge.h"

#include <algorithm>
#include <utility>

#include "codecs/dequant.h"
#include "formats/ztensor/v1/format.h"

namespace weighbridge::ztensor1 {
namespace {

constexpr std::string_view kRaw = "raw", kZstdName = "zstd";

// The logical dtype if it is known, else the storage dtype. Elements of an unknown dtype count as bytes.
DType element_dtype(const Component& c) noexcept { return c.logical != DType::unknown ? c.logical : c.storage; }
std::uint64_t element_size(const Component& c) noexcept {
  return std::max<std::uint64_t>(1, info(element_dtype(c)).bits / 8);
}

void set_count(Component& c, std::uint64_t size) noexcept {
  c.size = size;
  c.dims[0] = size / element_size(c);
  c.rank = 1;
  c.tensor_shape = false;
}

}  // namespace

void Judge::judge(Entry& e) {
  if (e.broken) return;  // some field could not be read, so further errors would mislead
  unsupported_.reset();
  check_fields(e);
  for (Component& c : e.parts) check_component(e, c);
  if (e.broken) return;
  Layout layout = Layout::structural;
  if (is(e.layout, "dense")) {
    layout = Layout::dense;
    dense(e);
  } else if (e.layout == "sparse_csr") {
    layout = Layout::sparse_csr;
    csr(e);
  } else if (e.layout == "sparse_coo") {
    layout = Layout::sparse_coo;
    coo(e);
  } else if (e.layout == "quantized_group") {
    layout = Layout::quantized_group;
    quantized(e);
  } else if (const auto codes = scaled(e)) {
    layout = *codes;
  } else {
    mark_unsupported(rules::kUnknownFormat, e, e.at, e.layout);
    for (Component& c : e.parts)
      if (!loose(e, c)) break;
  }
  if (!e.broken && layout != Layout::structural && layout != Layout::dense) check_dense_size(e, layout);
  if (!e.broken) add(e, layout);
}

// The size of the dense form must fit 64 bits, because a caller may ask for it.
void Judge::check_dense_size(Entry& e, Layout layout) {
  const Component* const values = e.find(kValues);
  const DType dtype = is_quantized(layout) || !values ? DType::f32 : values->logical;
  if (dtype != DType::unknown && !packed_size(dtype, *base::element_count(e.shape())))
    reject(rules::kShapeOverflow, e, e.at, "its dense form");
}

void Judge::check_fields(Entry& e) {
  if (!e.has_shape || !e.has_layout || !e.has_parts)
    require(rules::kObjectMissing, e, nullptr,
            {{e.has_shape, kShape}, {e.has_layout, kFormatKey}, {e.has_parts, kComponents}});
  if (e.has_shape && !base::element_count(e.shape())) reject(rules::kShapeOverflow, e, e.at, "its number of elements");
}

DType Judge::lookup(std::string_view dtype) {
  if (dtype == last_name_ && !dtype.empty()) return last_dtype_;  // neighboring objects mostly share a dtype
  const auto found = dtype_from_name(dtype);
  const DType known = found && holds(*found) ? *found : DType::unknown;
  if (known != DType::unknown) {
    last_name_ = name(known);
    last_dtype_ = known;
  }
  return known;
}

void Judge::check_component(Entry& e, Component& c) {
  if (!c.has_dtype || !c.has_offset || !c.has_length)
    require(rules::kComponentMissing, e, &c, {{c.has_dtype, kDtype}, {c.has_offset, kOffset}, {c.has_length, kLength}});
  if (c.has_dtype) check_types(e, c);
  if (c.has_digest) check_digest(rules::kDigestSyntax, rules::kDigestUnknown, e, c, core::parse_digest(c.digest));
  if (c.has_offset && c.has_length)
    check_extent({rules::kOffset, rules::kRange, kAlignment, end_}, e, &c, c.offset, c.length);
}

void Judge::check_types(Entry& e, Component& c) {
  c.storage = lookup(c.dtype);
  if (!resolve_type(rules::kUnknownType, rules::kTypeMismatch, kLogicalTypes, e, c)) return;
  if (c.storage == DType::unknown) mark_unsupported(rules::kUnknownDtype, e, c, c.dtype);
  if (!is(c.encoding, kRaw) && c.encoding != kZstdName) mark_unsupported(rules::kUnknownEncoding, e, c, c.encoding);
}

// The rules of layouts for their components

Component* Judge::need(Entry& e, std::string_view role) {
  Component* const c = e.find(role);
  if (!c) reject(rules::kRoleMissing, e, e.at, role);
  return c;
}

// Requires that the component holds exactly this many elements.
bool Judge::demand(Entry& e, Component& c, std::optional<std::uint64_t> elements, const Rule& raw_rule) {
  const auto size = elements ? packed_size(element_dtype(c), *elements) : std::nullopt;
  if (!size) return reject(rules::kShapeOverflow, e, c);
  c.size = *size;
  if (is(c.encoding, kRaw)) {
    if (c.length != *size) return reject(raw_rule, e, c, {*size, " bytes"}, c.length);
  } else if (c.encoding == kZstdName) {
    if (c.has_decoded && c.decoded_length != *size) {
      return reject(rules::kUncompressed, e, c, {*size, " bytes"}, c.decoded_length);
    }
    return within_limit(e, &c, c.size);
  }
  return true;
}

// No field states the number of elements: it is as many as the bytes hold.
bool Judge::loose(Entry& e, Component& c) {
  const bool raw = is(c.encoding, kRaw);
  if (raw || (c.encoding == kZstdName && c.has_decoded)) {
    const auto count = stated_count(e, c);
    if (!count) return false;
    set_count(c, *count * element_size(c));
    return raw || within_limit(e, &c, c.size);
  }
  c.undecodable = true;
  c.size = c.dims[0] = c.length;
  return true;
}

void Judge::loose_rest(Entry& e, std::initializer_list<const Component*> known) {
  for (Component& c : e.parts) {
    if (std::find(known.begin(), known.end(), &c) != known.end()) continue;
    report(rules::kExtraRole, e, c.at, c.role);
    if (!loose(e, c)) return;
  }
}

void Judge::dense(Entry& e) {
  Component* const data = need(e, kData);
  if (!data) return;
  if (data->logical == DType::unknown) {
    if (!loose(e, *data)) return;
  } else {
    if (!demand(e, *data, base::element_count(e.shape()), rules::kLengthRule)) return;
    data->tensor_shape = true;
  }
  if (e.parts.size() > 1) loose_rest(e, {data});
}

std::optional<std::uint64_t> Judge::stated_count(Entry& e, const Component& c) {
  const bool raw = is(c.encoding, kRaw);
  if (!raw && !c.has_decoded) return std::nullopt;
  const std::uint64_t size = raw ? c.length : c.decoded_length, unit = element_size(c);
  if (size % unit == 0) return size / unit;
  reject(raw ? rules::kLengthRule : rules::kUncompressed, e, c, core::multiple_of(unit, " bytes"), size);
  return std::nullopt;
}

// Version 1.1 does not state the size of compressed sparse parts, and real frames often do not either. Then only
// decoding shows the number of values.
std::optional<std::uint64_t> Judge::probed_count(Entry& e, const Component& c) {
  core::Probed probed = probe_.size_of(c.offset, c.length);
  if (!probed.size) {
    reject(probed.limit ? *probed.limit : rules::kZstd, e, probed.offset.value_or(c.at), role_text(&c, {}, probed.why),
           std::move(probed.expected));
    return std::nullopt;
  }
  const auto size = probed.size;
  if (*size % element_size(c) == 0) return *size / element_size(c);
  reject(rules::kZstd, e, c.offset, role_text(&c), core::multiple_of(element_size(c), " bytes"), *size);
  return std::nullopt;
}

void Judge::csr(Entry& e) {
  if (e.rank != 2) {
    reject(rules::kSparseRank, e, e.at, {}, "2", e.rank);
    return;
  }
  Component* const values = need(e, kValues);
  Component* const indices = need(e, kIndices);
  Component* const indptr = need(e, kIndptr);
  if (!values || !indices || !indptr) return;
  for (const Component* c : {indices, indptr})
    if (c->logical != DType::unknown && !codecs::is_integer(c->logical))
      reject(rules::kIndexDtype, e, *c, {}, c->dtype);
  if (e.broken) return;
  if (unsupported_) {
    for (Component* c : {values, indices, indptr})
      if (!loose(e, *c)) return;
    loose_rest(e, {values, indices, indptr});
    return;
  }
  auto count = stated_count(e, *values);
  if (!count && !e.broken) count = stated_count(e, *indices);
  if (!count && !e.broken) count = probed_count(e, *values);
  if (!count || e.broken) return;
  if (!demand(e, *values, *count, rules::kLengthRule) || !demand(e, *indices, *count, rules::kIndexCount) ||
      !demand(e, *indptr, base::checked_add(e.dims[0], 1), rules::kIndexCount))
    return;
  for (Component* c : {values, indices, indptr}) set_count(*c, c->size);
  loose_rest(e, {values, indices, indptr});
}

void Judge::coo(Entry& e) {
  Component* const values = need(e, kValues);
  Component* const coords = need(e, kCoords);
  if (!values || !coords) return;
  if (coords->logical != DType::unknown && !codecs::is_integer(coords->logical)) {
    reject(rules::kIndexDtype, e, *coords, {}, coords->dtype);
    return;
  }
  if (e.rank == 0) mark_unsupported(rules::kUnknownFormat, e, e.at, "sparse_coo without dimensions");
  if (unsupported_) {
    if (loose(e, *values) && loose(e, *coords)) loose_rest(e, {values, coords});
    return;
  }
  auto count = stated_count(e, *values);
  if (!count && !e.broken) {
    const auto all = stated_count(e, *coords);
    if (all && *all % e.rank != 0) {
      reject(rules::kIndexCount, e, *coords, core::multiple_of(e.rank), *all);
    } else if (all) {
      count = *all / e.rank;
    }
  }
  if (!count && !e.broken) count = probed_count(e, *values);
  if (!count || e.broken) return;
  if (!demand(e, *values, *count, rules::kLengthRule) ||
      !demand(e, *coords, base::checked_mul(*count, e.rank), rules::kIndexCount))
    return;
  set_count(*values, values->size);
  coords->dims = {e.rank, *count};
  coords->rank = 2;
  loose_rest(e, {values, coords});
}

// Adding to the model

bool Judge::add_usual(std::string_view name, const UsualObject& o) {
  const DType dtype = lookup(o.dtype);
  const auto elements = base::element_count(o.shape());
  const auto size = elements ? packed_size(dtype, *elements) : std::nullopt;
  if (!size || o.length != *size || o.offset < kAlignment || o.offset % kAlignment != 0 ||
      !base::fits(o.offset, o.length, end_) || draft_.roles().size() >= kMaxRoles)
    return false;
  reach_ = std::max(reach_, o.offset + o.length);
  draft_.add_dense(name, dtype, o.shape(), {0, o.offset, o.length});
  return true;
}

void Judge::add(Entry& e, Layout layout) {
  if (!takes_roles(rules::kTooManyRoles, e, kMaxRoles)) return;
  const Component* const main = main_part(e, {kData, kValues, kPackedWeight});
  const bool quantized = is_quantized(layout);
  const DType dtype = quantized ? DType::f32 : main ? main->logical : DType::unknown;
  const std::uint32_t tensor = draft_.add_tensor(e.name, layout, dtype, e.shape());
  for (Component& c : e.parts) add_part(e, c);
  if (quantized) {
    const Value* const type = find(e.attributes, kType);
    draft_.tensor(tensor).block_type(find_block_type(layout, (type ? type->as_text() : std::nullopt).value_or("")));
  }
  if (layout == Layout::structural) draft_.tensor(tensor).layout_name(e.layout);
  if (!quantized && dtype == DType::unknown && main) draft_.tensor(tensor).type_name(main->type_name());
  finish(draft_.tensor(tensor), e);
}

void Judge::add_part(Entry& e, Component& c) {
  Encoding encoding = Encoding::unknown;
  if (is(c.encoding, kRaw))
    encoding = Encoding::raw;
  else if (c.encoding == kZstdName && !c.undecodable)
    encoding = Encoding::zstd;
  auto part =
      draft_.part(draft_.add_part(c.role, element_dtype(c), c.shape(e), encoding, {0, c.offset, c.length}, c.size));
  if (c.storage == DType::unknown) part.dtype_name(c.dtype);
  if (encoding == Encoding::unknown) part.encoding_name(c.encoding);
  if (c.has_type && c.logical == DType::unknown) part.extra(kType, Value::text(std::string(c.type)));
  if (c.has_decoded && encoding != Encoding::zstd) part.extra(kUncompressedLength, Value::integer(c.decoded_length));
  finish(part, c, e.part_extras);
}

}  // namespace weighbridge::ztensor1

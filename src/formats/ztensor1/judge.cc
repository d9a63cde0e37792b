// SPDX-License-Identifier: Apache-2.0
// The rules of one object: fields, components, and what each layout requires of them.
#include "formats/ztensor1/judge.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "core/common_rules.h"
#include "core/part_digest.h"
#include "core/plan_text.h"
#include "formats/ztensor1/rules.h"

namespace weighbridge::ztensor1 {
namespace {

constexpr std::string_view kRaw = "raw", kZstdName = "zstd";

std::string role_text(const Component& c) { return "component \"" + std::string(c.role) + "\""; }

bool is_integer(DType dtype) noexcept {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer;
}

// The logical dtype if it is known, else the storage dtype. Elements of an unknown dtype count as bytes.
DType element_dtype(const Component& c) noexcept { return c.logical != DType::unknown ? c.logical : c.storage; }
std::uint64_t element_size(const Component& c) noexcept {
  return std::max<std::uint64_t>(1, info(element_dtype(c)).bits / 8);
}

void set_count(Component& c, std::uint64_t size) noexcept {
  c.size = size;
  c.part_dims[0] = size / element_size(c);
  c.part_rank = 1;
  c.tensor_shape = false;
}

}  // namespace

void Judge::report(const Rule& rule, const Entry& e, std::uint64_t at, std::string_view detail, std::string expected,
                   std::string found) {
  findings_.report(rule, {.offset = at, .tensor = e.name}, std::move(expected), std::move(found), detail);
}

bool Judge::reject(const Rule& rule, Entry& e, std::uint64_t at, std::string_view detail, std::string expected,
                   std::string found) {
  e.broken = true;
  report(rule, e, at, detail, std::move(expected), std::move(found));
  return false;
}

void Judge::doubt(const Rule& rule, const Entry& e, std::uint64_t at, std::string_view detail) {
  if (!doubt_) doubt_ = core::Findings::make(rule, {.offset = at, .tensor = e.name}, {}, {}, detail);
}

void Judge::judge(Entry& e) {
  if (e.broken) return;  // after a field that could not be read, further errors would mislead
  doubt_.reset();
  check_fields(e);
  for (Component& c : e.components) check_component(e, c);
  if (e.broken) return;
  Layout layout = Layout::structural;
  if (is(e.format, "dense")) {
    layout = Layout::dense;
    dense(e);
  } else if (e.format == "sparse_csr") {
    layout = Layout::sparse_csr;
    csr(e);
  } else if (e.format == "sparse_coo") {
    layout = Layout::sparse_coo;
    coo(e);
  } else if (e.format == "quantized_group") {
    layout = Layout::quantized_group;
    quantized(e);
  } else if (const auto codes = scaled(e)) {
    layout = *codes;
  } else {
    doubt(rules::kUnknownFormat, e, e.at, e.format);
    for (Component& c : e.components)
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
  if (!e.has_shape || !e.has_format || !e.has_components) {
    for (const auto& [seen, key] :
         {std::pair{e.has_shape, kShape}, {e.has_format, kFormatKey}, {e.has_components, kComponents}})
      if (!seen) reject(rules::kObjectMissing, e, e.at, key);
  }
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
  if (!c.has_dtype || !c.has_offset || !c.has_length) {
    for (const auto& [seen, key] : {std::pair{c.has_dtype, kDtype}, {c.has_offset, kOffset}, {c.has_length, kLength}})
      if (!seen) reject(rules::kComponentMissing, e, c.at, role_text(c) + ", " + std::string(key));
  }
  if (c.has_dtype) resolve_dtype(e, c);
  if (c.has_digest) check_digest(e, c);
  if (!c.has_offset || !c.has_length) return;
  if (c.offset < kAlignment || c.offset % kAlignment != 0) {
    reject(rules::kOffset, e, c.at, role_text(c), "a multiple of 64 from 64 on", std::to_string(c.offset));
  } else if (!base::fits(c.offset, c.length, end_)) {
    reject(rules::kRange, e, c.at, role_text(c), "an end of at most " + std::to_string(end_),
           std::to_string(c.offset) + " + " + std::to_string(c.length));
  }
}

void Judge::resolve_dtype(Entry& e, Component& c) {
  c.storage = lookup(c.dtype);
  c.logical = c.storage;
  if (c.has_type) {
    const auto known = std::ranges::find(kLogicalTypes, c.type, &LogicalType::type);
    if (known == kLogicalTypes.end()) {
      c.logical = DType::unknown;
      doubt(rules::kUnknownType, e, c.at, role_text(c) + ", " + std::string(c.type));
    } else if (known->storage != c.storage) {
      reject(rules::kTypeMismatch, e, c.at, role_text(c) + ", " + std::string(c.type),
             std::string(name(known->storage)), std::string(c.dtype));
      return;
    } else {
      c.logical = known->logical;
    }
  }
  if (c.storage == DType::unknown) doubt(rules::kUnknownDtype, e, c.at, role_text(c) + ", " + std::string(c.dtype));
  if (!is(c.encoding, kRaw) && c.encoding != kZstdName)
    doubt(rules::kUnknownEncoding, e, c.at, role_text(c) + ", " + std::string(c.encoding));
}

void Judge::check_digest(Entry& e, const Component& c) {
  const core::DigestText digest = core::parse_digest(c.digest);
  if (!digest.problem.empty())
    reject(rules::kDigestSyntax, e, c.at, role_text(c), std::string(digest.problem), std::string(c.digest));
  else if (digest.kind == core::PartDigest::none)
    report(rules::kDigestUnknown, e, c.at, role_text(c), {}, std::string(c.digest));
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
  if (!size) return reject(rules::kShapeOverflow, e, c.at, role_text(c));
  c.size = *size;
  if (is(c.encoding, kRaw)) {
    if (c.length != *size)
      return reject(raw_rule, e, c.at, role_text(c), std::to_string(*size) + " bytes", std::to_string(c.length));
  } else if (c.encoding == kZstdName) {
    if (c.has_uncompressed_length && c.uncompressed_length != *size) {
      return reject(rules::kUncompressed, e, c.at, role_text(c), std::to_string(*size) + " bytes",
                    std::to_string(c.uncompressed_length));
    }
    return within_limit(e, c);
  }
  return true;
}

bool Judge::within_limit(Entry& e, const Component& c) {
  if (c.size <= context_.limits.decoded) return true;
  return reject(core::rules::kLimitDecoded, e, c.at, role_text(c),
                "at most " + std::to_string(context_.limits.decoded) + " bytes", std::to_string(c.size));
}

// The number of elements is not stated: it is the number that the bytes hold.
bool Judge::loose(Entry& e, Component& c) {
  const std::uint64_t unit = element_size(c);
  if (is(c.encoding, kRaw)) {
    if (c.length % unit != 0) {
      return reject(rules::kLengthRule, e, c.at, role_text(c), "a multiple of " + std::to_string(unit) + " bytes",
                    std::to_string(c.length));
    }
    set_count(c, c.length);
    return true;
  }
  if (c.encoding == kZstdName && c.has_uncompressed_length) {
    if (c.uncompressed_length % unit != 0) {
      return reject(rules::kUncompressed, e, c.at, role_text(c), "a multiple of " + std::to_string(unit) + " bytes",
                    std::to_string(c.uncompressed_length));
    }
    set_count(c, c.uncompressed_length);
    return within_limit(e, c);
  }
  c.undecodable = true;
  c.size = c.part_dims[0] = c.length;
  return true;
}

void Judge::loose_rest(Entry& e, std::initializer_list<const Component*> known) {
  for (Component& c : e.components) {
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
  if (e.components.size() > 1) loose_rest(e, {data});
}

std::optional<std::uint64_t> Judge::stated_count(Entry& e, const Component& c) {
  const bool raw = is(c.encoding, kRaw);
  if (!raw && !c.has_uncompressed_length) return std::nullopt;
  const std::uint64_t size = raw ? c.length : c.uncompressed_length, unit = element_size(c);
  if (size % unit == 0) return size / unit;
  reject(raw ? rules::kLengthRule : rules::kUncompressed, e, c.at, role_text(c),
         "a multiple of " + std::to_string(unit) + " bytes", std::to_string(size));
  return std::nullopt;
}

// Version 1.1 does not state the size of compressed sparse parts, and real frames often do not either. Then only
// decoding can tell the number of values.
std::optional<std::uint64_t> Judge::probed_count(Entry& e, const Component& c) {
  core::Probed probed = probe_.size_of(c.offset, c.length);
  if (!probed.size) {
    reject(probed.limit ? *probed.limit : rules::kZstd, e, probed.offset.value_or(c.at), role_text(c) + probed.why,
           std::move(probed.expected));
    return std::nullopt;
  }
  const auto size = probed.size;
  if (*size % element_size(c) == 0) return *size / element_size(c);
  reject(rules::kZstd, e, c.offset, role_text(c), "a multiple of " + std::to_string(element_size(c)) + " bytes",
         std::to_string(*size));
  return std::nullopt;
}

void Judge::csr(Entry& e) {
  if (e.rank != 2) {
    reject(rules::kSparseRank, e, e.at, {}, "2", std::to_string(e.rank));
    return;
  }
  Component* const values = need(e, kValues);
  Component* const indices = need(e, kIndices);
  Component* const indptr = need(e, kIndptr);
  if (!values || !indices || !indptr) return;
  for (const Component* c : {indices, indptr})
    if (c->logical != DType::unknown && !is_integer(c->logical))
      reject(rules::kIndexDtype, e, c->at, role_text(*c), {}, std::string(c->dtype));
  if (e.broken) return;
  if (doubt_) {
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
  if (coords->logical != DType::unknown && !is_integer(coords->logical)) {
    reject(rules::kIndexDtype, e, coords->at, role_text(*coords), {}, std::string(coords->dtype));
    return;
  }
  if (e.rank == 0) doubt(rules::kUnknownFormat, e, e.at, "sparse_coo without dimensions");
  if (doubt_) {
    if (loose(e, *values) && loose(e, *coords)) loose_rest(e, {values, coords});
    return;
  }
  auto count = stated_count(e, *values);
  if (!count && !e.broken) {
    const auto all = stated_count(e, *coords);
    if (all && *all % e.rank != 0) {
      reject(rules::kIndexCount, e, coords->at, role_text(*coords), "a multiple of " + std::to_string(e.rank),
             std::to_string(*all));
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
  coords->part_dims = {e.rank, *count};
  coords->part_rank = 2;
  loose_rest(e, {values, coords});
}

// Adding to the model

void Judge::add(Entry& e, Layout layout) {
  std::size_t roles = draft_.roles().size();
  for (const Component& c : e.components) {
    const auto known = draft_.roles();
    roles += std::find(known.begin(), known.end(), c.role) == known.end() ? 1U : 0U;
    if (roles > kMaxRoles) {
      reject(rules::kTooManyRoles, e, c.at, c.role);
      return;
    }
  }
  const Component* main = nullptr;
  for (const std::string_view role : {kData, kValues, kPackedWeight})
    if (!main) main = e.find(role);
  if (!main && !e.components.empty()) main = &e.components.front();
  const bool quantized = is_quantized(layout);
  const DType dtype = quantized ? DType::f32 : main ? main->logical : DType::unknown;
  const std::uint32_t tensor = draft_.add_tensor(e.name, layout, dtype, e.shape());
  for (Component& c : e.components) add_part(e, c);
  if (quantized) {
    const Value* const type = find(e.attributes, kType);
    draft_.tensor(tensor).block_type(find_block_type(layout, (type ? type->as_text() : std::nullopt).value_or("")));
  }
  if (!e.attributes.empty()) draft_.tensor(tensor).attributes(std::move(e.attributes));
  if (!e.extra.empty()) draft_.tensor(tensor).extra(std::move(e.extra));
  if (layout == Layout::structural) draft_.tensor(tensor).layout_name(e.format);
  if (!quantized && dtype == DType::unknown && main)
    draft_.tensor(tensor).type_name(main->has_type ? main->type : main->dtype);
  if (doubt_) {
    findings_.report(*doubt_);
    draft_.tensor(tensor).unsupported(std::move(*doubt_));
  }
}

void Judge::add_part(Entry& e, Component& c) {
  Encoding encoding = Encoding::unknown;
  if (is(c.encoding, kRaw))
    encoding = Encoding::raw;
  else if (c.encoding == kZstdName && !c.undecodable)
    encoding = Encoding::zstd;
  const Shape shape = c.tensor_shape ? e.shape() : Shape(c.part_dims.data(), c.part_rank);
  const std::uint32_t part =
      draft_.add_part(c.role, element_dtype(c), shape, encoding, {0, c.offset, c.length}, c.size);
  if (c.storage == DType::unknown) draft_.part(part).dtype_name(c.dtype);
  if (encoding == Encoding::unknown) draft_.part(part).encoding_name(c.encoding);
  if (c.has_digest) draft_.part(part).digest(c.digest);
  if (c.has_type && c.logical == DType::unknown)
    draft_.part(part).extra(std::string(kType), Value::text(std::string(c.type)));
  if (c.has_uncompressed_length && encoding != Encoding::zstd)
    draft_.part(part).extra(std::string(kUncompressedLength), Value::integer(c.uncompressed_length));
  for (std::uint32_t i = 0; i < c.extra_count; ++i) {
    auto& [key, value] = e.component_extras[c.first_extra + i];
    draft_.part(part).extra(std::move(key), std::move(value));
  }
}

}  // namespace weighbridge::ztensor1

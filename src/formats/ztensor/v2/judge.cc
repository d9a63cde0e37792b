// SPDX-License-Identifier: Apache-2.0
// The rules of one object: fields, parts, and what dense and sparse layouts require of them. quantized.cc has the rest.
#include "formats/ztensor/v2/judge.h"

#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "formats/ztensor/v2/format.h"

namespace weighbridge::ztensor2 {

void Judge::judge(Entry& e) {
  if (e.broken) return;  // after a field that could not be read, further errors would mislead
  unsupported_.reset();
  block_type_ = nullptr;
  check_fields(e);
  for (PartEntry& p : e.parts) check_part(e, p);
  if (e.broken) return;
  const Layout layout = check_layout(e);
  if (e.broken) return;
  // Callers may request the dense form.
  const DType dense = is_quantized(layout) ? DType::f32 : e.parts.front().logical;
  if (!unsupported_ && layout != Layout::dense && layout != Layout::structural && dense != DType::unknown &&
      !packed_size(dense, *base::element_count(e.shape())))
    mark_unsupported(rules::kParameters, e, e.at, "its dense form would have more than 2^64 - 1 bytes");
  add(e, layout);
}

void Judge::check_fields(Entry& e) {
  if (!is_name(e.name)) reject(rules::kName, e, e.at, {}, "1 to 1024 bytes", e.name.size());
  require(rules::kObjectMissing, e, nullptr, {{e.has_shape, kShape}, {e.has_layout, kLayout}, {e.has_parts, kParts}});
  if (e.has_shape && !base::element_count(e.shape())) reject(rules::kShapeOverflow, e, e.at, "its number of elements");
  if (e.has_parts && e.parts.empty()) reject(rules::kNoParts, e, e.at, {});
}

void Judge::check_part(Entry& e, PartEntry& p) {
  if (!is_name(p.role)) reject(rules::kName, e, p, "1 to 1024 bytes", p.role.size());
  require(rules::kPartMissing, e, &p, {{p.has_dtype, kDtype}, {p.has_blob, kBlob}});
  if (p.has_dtype) check_types(e, p);
  check_encoding(e, p);
  if (p.has_digest)
    check_digest(rules::kDigestSyntax, rules::kDigestUnknown, e, p, core::parse_decoded_digest(p.digest));
  if (p.has_blob) check_blob(e, p);
}

void Judge::check_types(Entry& e, PartEntry& p) {
  const auto found = dtype_from_name(p.dtype);
  if (!found || !is_storage(*found)) {
    reject(rules::kDtypeRule, e, p, {}, p.dtype);
    return;
  }
  p.storage = *found;
  resolve_type(rules::kUnknownType, rules::kTypeMismatch, kLogicalTypes, e, p);
}

void Judge::check_encoding(Entry& e, PartEntry& p) {
  p.size = p.has_encoding ? p.decoded_length : p.length;
  if (p.has_encoding != p.has_decoded)
    reject(rules::kDecoded, e, p);
  else if (p.has_encoding && p.encoding != kSeekable)
    mark_unsupported(rules::kUnknownEncoding, e, p, p.encoding);
  else if (p.has_encoding)
    within_limit(e, &p, p.size);
}

void Judge::check_blob(Entry& e, PartEntry& p) {
  std::uint64_t end = end_;
  if (p.has_shard) {
    const auto shard = shards_.find(p.shard);
    if (!shard) {
      reject(rules::kShardUnknown, e, p, {}, p.shard);
      return;
    }
    p.shard_index = *shard;
    end = shards_[*shard].size - kFooterSize;  // the table has no smaller ones
  }
  check_extent({rules::kOffset, rules::kRange, kAlignment, end}, e, &p, p.offset, p.length);
}

std::vector<std::uint32_t> Judge::overlaps(std::uint64_t manifest_offset, std::uint64_t manifest_length) {
  ranges_.push_back({0, manifest_offset, manifest_length, core::kNone});
  std::vector<std::uint32_t> broken;
  core::Extents(std::move(ranges_))
      .walk([&](const core::Range& range, core::Relation relation, const core::Range* before) {
        if (relation != core::Relation::overlap) return;
        const std::uint32_t item = range.item != core::kNone ? range.item : before->item;
        core::At at{.offset = range.source == 0 ? std::optional(range.offset) : std::nullopt};
        std::string detail;
        if (range.source != 0) detail = "shard \"" + std::string(shards_[range.source - 1].name) + "\"";
        if (item != core::kNone) at.tensor = draft_.name(item);
        findings_.report(rules::kOverlap, at, {},
                         {range.offset, " to ", range.end(), " and ", before->offset, " to ", before->end()}, detail);
        if (item != core::kNone) broken.push_back(item);
      });
  std::ranges::sort(broken);
  broken.erase(std::unique(broken.begin(), broken.end()), broken.end());
  return broken;
}

// Layouts

Layout Judge::check_layout(Entry& e) {
  if (e.layout == kDense) {
    dense(e);
    return Layout::dense;
  }
  if (e.layout == kCsr) {
    csr(e);
    return Layout::sparse_csr;
  }
  if (e.layout == kCoo) {
    coo(e);
    return Layout::sparse_coo;
  }
  for (PartEntry& p : e.parts) set_count(p);
  if (e.layout == kQuantGroup) return quantized(e);
  if (e.layout == kMx) return mx(e);
  if (e.layout == kOwnBlocks) return own_blocks(e);
  if (e.layout.starts_with(kGgufPrefix) && e.layout.ends_with(kFirstVersion)) {
    const auto type = e.layout.substr(kGgufPrefix.size(), e.layout.size() - kGgufPrefix.size() - kFirstVersion.size());
    return gguf(e, type);
  }
  mark_unsupported(rules::kUnknownLayout, e, e.at, e.layout);
  return Layout::structural;
}

bool Judge::exactly(Entry& e, std::initializer_list<std::string_view> roles) {
  std::string wanted, found;
  for (const std::string_view role : roles) wanted += (wanted.empty() ? "" : ", ") + std::string(role);
  for (const PartEntry& p : e.parts) found += (found.empty() ? "" : ", ") + std::string(p.role);
  const bool all = std::ranges::all_of(roles, [&](std::string_view role) { return e.find(role) != nullptr; });
  return (all && e.parts.size() == roles.size()) || reject(rules::kLayoutParts, e, e.at, {}, wanted, found);
}

bool Judge::plain_index(Entry& e, const PartEntry& p) {
  return (!p.has_type && (p.storage == DType::u32 || p.storage == DType::u64)) ||
         reject(rules::kLayoutDtype, e, p, "u32 or u64", p.type_name());
}

bool Judge::demand_bytes(Entry& e, PartEntry& p, std::optional<std::uint64_t> bytes, const Rule& rule) {
  if (!bytes) return reject(rules::kShapeOverflow, e, p);
  return p.size == *bytes || reject(rule, e, p, {*bytes, " bytes"}, p.size);
}

bool Judge::demand(Entry& e, PartEntry& p, std::optional<std::uint64_t> elements, const Rule& rule) {
  if (p.logical == DType::unknown) {  // its size function is not known
    set_count(p);
    return true;
  }
  if (!demand_bytes(e, p, elements ? packed_size(p.logical, *elements) : std::nullopt, rule)) return false;
  p.rank = 1;
  p.dims[0] = *elements;
  return true;
}

void Judge::set_count(PartEntry& p) noexcept {
  const DType element = p.logical != DType::unknown ? p.logical : p.storage;
  const std::uint64_t bits = info(element).bits;
  p.rank = 1;
  p.dims[0] = bits == 4 && p.size <= UINT64_MAX / 2 ? p.size * 2 : p.size / std::max<std::uint64_t>(1, bits / 8);
}

void Judge::dense(Entry& e) {
  if (!exactly(e, {kData})) return;
  PartEntry& data = e.parts.front();
  if (demand(e, data, base::element_count(e.shape()), rules::kDenseSize))
    data.tensor_shape = data.logical != DType::unknown;
}

void Judge::csr(Entry& e) {
  if (e.rank != 2) {
    reject(rules::kLayoutShape, e, e.at, {}, "2 dimensions", e.rank);
    return;
  }
  if (!exactly(e, {kValues, kIndices, kIndptr})) return;
  PartEntry &values = *e.find(kValues), &indices = *e.find(kIndices), &indptr = *e.find(kIndptr);
  if (!plain_index(e, indices) || !plain_index(e, indptr)) return;
  if (indptr.storage != indices.storage) {
    reject(rules::kLayoutDtype, e, indptr, indices.dtype, indptr.dtype);
    return;
  }
  const std::uint64_t width = info(indices.storage).bits / 8;
  if (indices.size % width != 0) {
    reject(rules::kLayoutSize, e, indices, core::multiple_of(width, " bytes"), indices.size);
    return;
  }
  demand(e, indptr, base::checked_add(e.dims[0], 1), rules::kLayoutSize);
  demand(e, indices, indices.size / width, rules::kLayoutSize);
  demand(e, values, indices.size / width, rules::kLayoutSize);
}

void Judge::coo(Entry& e) {
  if (e.rank == 0) {
    reject(rules::kLayoutShape, e, e.at, {}, "at least 1 dimension", "0");
    return;
  }
  if (!exactly(e, {kValues, kCoords})) return;
  PartEntry &values = *e.find(kValues), &coords = *e.find(kCoords);
  if (!plain_index(e, coords)) return;
  const std::uint64_t unit = info(coords.storage).bits / 8 * e.rank;
  if (coords.size % unit != 0) {
    reject(rules::kLayoutSize, e, coords, core::multiple_of(unit, " bytes"), coords.size);
    return;
  }
  const std::uint64_t count = coords.size / unit;
  if (!demand(e, values, count, rules::kLayoutSize)) return;
  coords.dims[0] = e.rank;
  coords.dims[1] = count;
  coords.rank = 2;
}

// Adding to the model

void Judge::add(Entry& e, Layout layout) {
  if (!takes_roles(rules::kTooManyRoles, e, kMaxRoles)) return;
  // Do it only now, so that shards are opened only for valid objects.
  const Shard* missing = nullptr;
  for (const PartEntry& p : e.parts) {
    if (!p.has_shard) continue;
    const Shard& shard = shards_.open(p.shard_index);
    if (shard.state == Shard::State::broken) return;  // which has been reported
    if (shard.state == Shard::State::missing && !missing) missing = &shard;
  }
  if (block_type_ && !unsupported_) check_blocks(e);
  const PartEntry* const main = main_part(e, {kData, kValues});
  const bool quantized = is_quantized(layout);
  const DType dtype = quantized ? DType::f32 : layout == Layout::structural ? DType::unknown : main->logical;
  const std::uint32_t tensor = draft_.add_tensor(e.name, layout, dtype, e.shape());
  for (PartEntry& p : e.parts) add_part(e, p);
  auto draft = draft_.tensor(tensor);
  if (quantized) draft.block_type(block_type_);
  if (layout == Layout::structural) draft.layout_name(e.layout);
  if (!quantized && dtype == DType::unknown) draft.type_name(main->type_name());
  const bool was_unsupported = unsupported_.has_value();
  finish(draft, e);
  if (was_unsupported || !missing) return;
  Finding why = *missing->missing_why;
  why.tensor = e.name;
  draft.unsupported(std::move(why));
}

void Judge::add_part(Entry& e, PartEntry& p) {
  const Shard* const shard = p.has_shard ? &shards_[p.shard_index] : nullptr;
  const bool absent = shard && shard->state != Shard::State::open;
  DType element = p.logical != DType::unknown ? p.logical : p.storage;
  if (p.logical == DType::unknown && p.size % std::max<std::uint64_t>(1, info(element).bits / 8) != 0) {
    element = DType::unknown;
    p.dims[0] = p.size;
  }
  const Encoding encoding = absent                    ? Encoding::computed
                            : !p.has_encoding         ? Encoding::raw
                            : p.encoding == kSeekable ? Encoding::zstd_seekable
                                                      : Encoding::unknown;
  const Extent extent{shard && !absent ? shard->source : 0, p.offset, p.length};
  const std::uint32_t part = draft_.add_part(p.role, element, p.shape(e), encoding, extent, p.size);
  ranges_.push_back({shard ? p.shard_index + 1 : 0, p.offset, p.length, draft_.size() - 1});
  auto draft = draft_.part(part);
  if (element == DType::unknown) draft.dtype_name(p.dtype);
  if (absent)
    draft.make([file = std::string(shard->name)](const Context&, const auto&) {
      base::unsupported(rules::kShardMissing.id, std::string(rules::kShardMissing.sentence) + ": shard " + file);
    });
  if (p.has_encoding && encoding == Encoding::unknown) {
    draft.encoding_name(p.encoding);
    draft.extra(kDecodedLength, Value::integer(p.decoded_length));
  }
  if (p.has_type && p.logical == DType::unknown) draft.extra(kType, Value::text(std::string(p.type)));
  finish(draft, p, e.part_extras);
}

}  // namespace weighbridge::ztensor2

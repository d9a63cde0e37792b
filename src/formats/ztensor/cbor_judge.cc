// SPDX-License-Identifier: Apache-2.0
#include "formats/ztensor/cbor_judge.h"

#include "base/checked.h"
#include "core/reading/rules.h"

namespace weighbridge::ztensor {

void CborJudge::report(const Rule& rule, const CborEntry& e, std::uint64_t at, const Said& detail, const Said& expected,
                       const Said& found) {
  findings_.report(rule, {.offset = at, .tensor = e.known_name()}, expected, found, detail);
}

bool CborJudge::reject(const Rule& rule, CborEntry& e, std::uint64_t at, const Said& detail, const Said& expected,
                       const Said& found) {
  e.broken = true;
  report(rule, e, at, detail, expected, found);
  return false;
}

void CborJudge::mark_unsupported(const Rule& rule, const CborEntry& e, std::uint64_t at, const Said& detail) {
  if (!unsupported_) unsupported_ = Findings::make(rule, {.offset = at, .tensor = e.known_name()}, {}, {}, detail);
}

bool CborJudge::reject(const Rule& rule, CborEntry& e, const CborPart& part, const Said& expected, const Said& found) {
  return reject(rule, e, part.at, role_text(&part), expected, found);
}

void CborJudge::mark_unsupported(const Rule& rule, const CborEntry& e, const CborPart& part, std::string_view what) {
  mark_unsupported(rule, e, part.at, role_text(&part, ", ", what));
}

Said CborJudge::role_text(const CborPart* part, std::string_view then, std::string_view more) const {
  if (part == nullptr) return more;
  return {noun_, " \"", part->role, "\"", then, more};
}

void CborJudge::require(const Rule& rule, CborEntry& e, const CborPart* part, std::initializer_list<Field> fields) {
  for (const auto& [seen, key] : fields)
    if (!seen) reject(rule, e, part ? part->at : e.at, role_text(part, ", ", key));
}

void CborJudge::check_extent(const Bounds& bounds, CborEntry& e, const CborPart* part, std::uint64_t offset,
                             std::uint64_t length) {
  const std::uint64_t at = part ? part->at : e.at;
  if (offset < bounds.alignment || offset % bounds.alignment != 0) {
    reject(bounds.misplaced, e, at, role_text(part),
           {"a multiple of ", bounds.alignment, " from ", bounds.alignment, " on"}, offset);
  } else if (!base::fits(offset, length, bounds.end)) {
    reject(bounds.outside, e, at, role_text(part), {"an end of at most ", bounds.end}, {offset, " + ", length});
  } else {
    reach_ = std::max(reach_, offset + length);
  }
}

bool CborJudge::within_limit(CborEntry& e, const CborPart* part, std::uint64_t decoded) {
  const std::uint64_t maximum = context_.limits.decoded;
  return decoded <= maximum || reject(core::rules::kLimitDecoded, e, part ? part->at : e.at, role_text(part),
                                      core::at_most(maximum, " bytes"), decoded);
}

void CborJudge::check_digest(const Rule& malformed, const Rule& unknown, CborEntry& e, const CborPart& part,
                             const DigestText& digest) {
  if (!digest.problem.empty())
    reject(malformed, e, part, digest.problem, part.digest);
  else if (digest.kind == core::PartDigest::none)
    report(unknown, e, part.at, role_text(&part), {}, part.digest);
}

bool CborJudge::resolve_type(const Rule& unknown, const Rule& mismatch, std::span<const LogicalType> types,
                             CborEntry& e, CborPart& part) {
  part.logical = part.storage;
  if (!part.has_type) return true;
  const auto known = std::ranges::find(types, part.type, &LogicalType::type);
  if (known != types.end() && known->storage != part.storage)
    return reject(mismatch, e, part.at, role_text(&part, ", ", part.type), name(known->storage), part.dtype);
  part.logical = known != types.end() ? known->logical : DType::unknown;
  if (part.logical == DType::unknown) mark_unsupported(unknown, e, part, part.type);
  return true;
}

void CborJudge::report_unsupported(TensorDraft tensor) {
  if (!unsupported_) return;
  findings_.report(*unsupported_);
  tensor.unsupported(*std::move(unsupported_));
}

void CborJudge::finish(PartDraft draft, const CborPart& part, std::vector<Value::Entry>& part_extras) {
  if (part.has_digest) draft.digest(part.digest);
  for (std::uint32_t i = 0; i < part.extra_count; ++i) {
    auto& [key, value] = part_extras[part.first_extra + i];
    draft.extra(std::move(key), std::move(value));
  }
}

}  // namespace weighbridge::ztensor

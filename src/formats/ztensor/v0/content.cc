// SPDX-License-Identifier: Apache-2.0
// The content rules of zTensor 0.1: checksums of stored bytes and zstd frames in one pass over the payload, then the
// indices of sparse tensors. Bools and padding may be any byte (readings Z7, Z8). Overlaps are checked here too, so
// that opening need not sort.
#include <vector>

#include "core/model/draft.h"
#include "core/payload/content.h"
#include "core/payload/extents.h"
#include "formats/ztensor/v0/format.h"
#include "formats/ztensor/v0/judge.h"

namespace weighbridge::ztensor0 {
namespace {

// G6: equal ranges are aliases; any other shared byte is a warning.
void find_overlaps(const Model& model, std::vector<Finding>& out) {
  const core::Sharing owners = core::sharing(model);
  core::Extents::of(model).walk([&](const core::Range& range, core::Relation relation, const core::Range* furthest) {
    if (relation == core::Relation::overlap)
      out.push_back(core::Findings::make(rules::kOverlap,
                                         {.offset = range.offset, .tensor = model.name(owners.tensor[range.item])}, {},
                                         {"the bytes before ", furthest->end()}));
  });
}

}  // namespace

void check_share(const Model& model, const Share& share, const Context& context, core::Findings& findings) {
  constexpr core::StatedRules kRules{
      parse_checksum,
      rules::kChecksumRule,
      rules::kZstdRule,
      nullptr,
      {rules::kIndptr, rules::kEntryRange, rules::kDuplicateEntries, rules::kDuplicatesUnchecked}};
  core::check_stated(model, kRules, share, context, findings,
                     [&](core::Progress&, std::vector<Finding>& found) { find_overlaps(model, found); });
}

}  // namespace weighbridge::ztensor0

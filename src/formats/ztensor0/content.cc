// SPDX-License-Identifier: Apache-2.0
// The content rules of zTensor 0.1: checksums of stored bytes and zstd frames in one pass over the payload, then the
// indices of sparse tensors. Bools and padding may be any byte (readings Z7, Z8). Overlaps are checked here too, so
// that opening need not sort.
#include <algorithm>
#include <vector>

#include "core/content.h"
#include "core/draft.h"
#include "core/encoding.h"
#include "core/extents.h"
#include "core/sparse_content.h"
#include "formats/ztensor0/format.h"
#include "formats/ztensor0/judge.h"
#include "formats/ztensor0/rules.h"

namespace weighbridge::ztensor0 {
namespace {

std::vector<core::PartJob> jobs_of(const Model& model) {
  std::vector<core::PartJob> jobs;
  for (std::uint32_t t = 0; t < model.size(); ++t) {
    core::PartJob job;
    job.tensor = model[t];
    job.part = job.tensor.main();
    const core::DigestText digest = parse_checksum(job.part.digest());
    job.digest = digest.kind;
    job.expected = digest.digits;
    job.digest_rule = &rules::kChecksumRule;
    if (core::is_coded(job.part.encoding())) job.encoding_rule = &rules::kZstdRule;
    if (job.digest != core::PartDigest::none || job.encoding_rule) jobs.push_back(job);
  }
  return jobs;
}

// G6: equal ranges are aliases; any other shared byte is a warning.
void find_overlaps(const Model& model, std::vector<Finding>& out) {
  const core::Sharing owners = core::sharing(model);
  core::Extents::of(model).walk([&](const core::Range& range, core::Meeting meeting, const core::Range* widest) {
    if (meeting == core::Meeting::overlap)
      out.push_back(core::Findings::make(rules::kOverlap,
                                         {.offset = range.offset, .tensor = model.name(owners.tensor[range.item])}, {},
                                         "the bytes before " + std::to_string(widest->end())));
  });
}

}  // namespace

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<Finding> found;
  const std::vector<core::PartJob> jobs = jobs_of(model);
  constexpr core::SparseRules kSparse{rules::kIndptr, rules::kEntryRange, rules::kDuplicateEntries,
                                      rules::kDuplicatesUnchecked};
  core::Progress progress(context, core::stored_bytes(jobs) + core::sparse_bytes(model));
  core::check_parts(jobs, context, progress, found);
  core::check_sparse(model, kSparse, context, progress, found);
  find_overlaps(model, found);
  progress.finish();
  core::sort_findings(found);
  for (Finding& finding : found) findings.report(std::move(finding));
}

}  // namespace weighbridge::ztensor0

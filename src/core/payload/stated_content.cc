// SPDX-License-Identifier: Apache-2.0
#include "core/payload/content.h"

#include <utility>

#include "core/payload/payload.h"

namespace weighbridge::core {
namespace {

std::vector<PartJob> jobs_of(const Model& model, const StatedRules& rules) {
  std::vector<PartJob> jobs;
  for (const Tensor& tensor : model)
    for (const Part& part : tensor.parts()) {
      if (!part.extent() || (cut_of(part) && part != tensor.main())) continue;
      const bool known = part.encoding() != Encoding::unknown;
      const DigestText digest = rules.parse(part.digest());
      PartJob job;
      job.tensor = tensor;
      job.part = part;
      // Of bytes that cannot be decoded, only a digest of the stored ones can be checked.
      if (known || digest.kind == PartDigest::sha256 || digest.kind == PartDigest::crc32c) {
        job.digest = digest.kind;
        job.expected = digest.digits;
        job.digest_rule = &rules.digest;
      }
      if (known && part.dtype() == DType::boolean) job.bool_rule = rules.boolean;
      if (is_coded(part.encoding())) job.encoding_rule = &rules.encoding;
      if (job.digest != PartDigest::none || job.bool_rule || job.encoding_rule) jobs.push_back(std::move(job));
    }
  return jobs;
}

}  // namespace

void check_stated(const Model& model, const StatedRules& rules, const Share& share, const Context& context,
                  Findings& findings, const std::function<void(Progress&, std::vector<Finding>&)>& more) {
  const std::vector<PartJob> jobs = jobs_of(model, rules);
  std::vector<Finding> found;
  Progress progress(context, stored_bytes(jobs) + sparse_bytes(model));
  check_parts(jobs, context, progress, found, share);
  if (share.index == 0) {
    check_sparse(model, rules.sparse, context, progress, found);
    more(progress, found);
  }
  progress.finish();
  report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::core

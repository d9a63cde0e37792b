// SPDX-License-Identifier: Apache-2.0
// The one content rule of safetensors, a warning: bytes of BOOL tensors must be 0 or 1 (reading T6).
#include <vector>

#include "core/payload/content.h"
#include "formats/safetensors/format.h"

namespace weighbridge::safetensors {

void check_content(const Model& model, const Context& context, core::Findings& findings) {
  std::vector<core::PartJob> jobs;
  for (std::uint32_t i = 0; i < model.size(); ++i) {
    const Tensor tensor = model[i];
    if (tensor.dtype() != DType::boolean) continue;
    core::PartJob job;
    job.tensor = tensor;
    job.part = tensor.main();
    job.bool_rule = &rules::kBoolByte;
    jobs.push_back(job);
  }
  std::vector<Finding> found;
  core::check_parts(jobs, context, found);
  core::report_sorted(std::move(found), findings);
}

}  // namespace weighbridge::safetensors

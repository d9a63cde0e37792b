// SPDX-License-Identifier: Apache-2.0
// verify() of a path: a file by the registry, a folder by its bundle.
#include "weighbridge/verify.h"

#include "bundle/bundle.h"
#include "bundle/huggingface/format.h"

namespace weighbridge {

Verdict verify(const std::string& path, const Context& context, const OpenOptions& options) {
  const auto folder = bundle::folder_at(path, options);
  if (!folder) return verify(open_file(path, options.access), context, options);
  Verdict verdict;
  verdict.format = huggingface::format().info.name;
  core::Findings findings(verdict.report, core::Findings::Mode::all);
  verdict.model = huggingface::load(*folder, context, findings);
  huggingface::format().check_content(verdict.model, context, findings);
  core::place_files(verdict.report, verdict.model);
  for (const auto& source : verdict.model.sources()) source->check_unchanged();
  return verdict;
}

}  // namespace weighbridge

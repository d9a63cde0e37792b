// SPDX-License-Identifier: Apache-2.0
// verify(): the same walker as open's, which goes on after errors, then the content rules of what could be read.
#include "weighbridge/verify.h"

#include <utility>

#include "registry/load.h"

namespace weighbridge {

Verdict verify(std::shared_ptr<const Source> source, const Context& context, const OpenOptions& options) {
  Verdict verdict;
  core::Findings findings(verdict.report, core::Findings::Mode::all);
  registry::Loaded loaded = registry::load(source, context, options, findings);
  verdict.model = std::move(loaded.model);
  if (loaded.format != nullptr) {
    verdict.format = loaded.format->info.name;
    if (loaded.format->check_content != nullptr) loaded.format->check_content(verdict.model, context, findings);
  }
  core::place_files(verdict.report, verdict.model);
  source->check_unchanged();
  return verdict;
}

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// verify(): runs the same walker as open() but continues after errors, then checks the content rules of what it could
// read.
#include "weighbridge/verify.h"

#include <utility>

#include "registry/checked.h"
#include "registry/load.h"

namespace weighbridge {

Verdict verify(std::shared_ptr<const Place> place, const Context& context, const OpenOptions& options) {
  Verdict verdict;
  core::Findings findings(verdict.report, core::Findings::Mode::all);
  registry::Loaded loaded = registry::load(place, context, options, findings);
  registry::check_content(loaded, context, findings);
  verdict.model = std::move(loaded.model);
  if (loaded.format != nullptr) verdict.format = loaded.format->info.name;
  if (loaded.format != nullptr) {
    registry::warn_of_zero_tail(*place, verdict.model, findings);
    registry::say_what_was_checked(*loaded.format, verdict);
  }
  core::place_files(verdict.report, verdict.model);
  if (const auto file = place->file()) file->check_unchanged();
  for (const auto& source : verdict.model.sources()) source->check_unchanged();
  return verdict;
}

Verdict verify(const std::string& path, const Context& context, const OpenOptions& options) {
  return verify(place_at(path, options.access), context, options);
}
Verdict verify(std::shared_ptr<const Source> source, const Context& context, const OpenOptions& options) {
  return verify(place_of(std::move(source)), context, options);
}

}  // namespace weighbridge

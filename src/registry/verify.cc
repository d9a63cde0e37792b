// SPDX-License-Identifier: Apache-2.0
// verify(): runs the same walker as open() but continues after errors, then checks the content rules of what it could
// read.
#include "weighbridge/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "core/model/progress.h"
#include "core/writing/claims.h"
#include "delta/patch.h"
#include "formats/pytorch/format.h"
#include "recipes/match.h"
#include "registry/load.h"

namespace weighbridge {
namespace {

// The largest Share::of: dividing the payload takes memory for each share.
constexpr std::uint32_t kMaxShares = 4096;

void require(const Share& share) {
  if (share.of < 1 || share.of > kMaxShares || share.index >= share.of)
    base::misuse("share", fmt::format("share {} of {}: there are 1 to {}, and the first has index 0", share.index,
                                      share.of, kMaxShares));
}

std::vector<std::string> names_not_known_safe(const Report& report) {
  std::vector<std::string> out;
  for (const Finding& each : report.findings())
    if (base::is_not_known_safe(each.rule) && out.size() < Verdict::kMaxNotKnownSafe &&
        std::ranges::find(out, each.found) == out.end())
      out.push_back(each.found);
  return out;
}

}  // namespace

Verdict verify(std::shared_ptr<const Place> place, const Context& context, const OpenOptions& options,
               const Share& share) {
  require(share);
  const bool first = share.index == 0;
  Verdict verdict;
  core::Findings findings(verdict.report, core::Findings::Mode::all);
  core::NamedFiles files;
  findings.keep_files(&files);
  Report of_first;
  core::Findings left_to_first(of_first, core::Findings::Mode::all);
  OpenOptions reading = options;
  if (!first) reading.checks = Checks::structure;
  core::StepTimer timer(verdict.checks);
  registry::Loaded loaded = registry::load(place, context, reading, first ? findings : left_to_first);
  timer.ran("structure");
  if (first) registry::drop_read_as(loaded, verdict.report);
  verdict.payload_begin = verdict.report.findings().size();
  verdict.shares = registry::check_content(loaded, share, context, findings);
  if (loaded.format != nullptr && loaded.format->check_content != nullptr) timer.ran("tensor data");
  if (first && verdict.report.valid()) {
    core::check_claims(loaded.model, context, findings);
    recipes::check_quantized(loaded.model, context, findings);
    delta::check(loaded.model, context, findings);
    timer.ran("claims, quantized layers and patches");
  }
  verdict.payload_end = verdict.report.findings().size();
  if (first && place->kind() == Place::Kind::folder) {
    registry::check_pickles_of_folder(*place, loaded.model, context, findings);
    timer.ran("pickles in the folder");
  }
  verdict.model = std::move(loaded.model);
  if (loaded.format != nullptr) verdict.format = loaded.format->info.name;
  if (loaded.format != nullptr && first) {
    if (const auto file = place->file(); file && loaded.format != &pytorch::kFormat)
      registry::report_also_pickle(*file, context, findings);
    if (const auto file = place->file()) registry::report_also_another(*file, *loaded.format, findings);
    registry::warn_of_zero_tail(*place, verdict.model, findings);
    timer.ran("other formats in the file, zeros at its end");
    registry::say_what_was_checked(*loaded.format, verdict);
  }
  files.place(verdict.report, verdict.model.sources());
  verdict.not_known_safe = names_not_known_safe(verdict.report);
  if (const auto file = place->file()) file->check_unchanged();
  for (const auto& source : verdict.model.sources()) source->check_unchanged();
  return verdict;
}

Verdict verify(const std::string& path, const Context& context, const OpenOptions& options, const Share& share) {
  return verify(place_at(path, options.access), context, options, share);
}
Verdict verify(std::shared_ptr<const Source> source, const Context& context, const OpenOptions& options,
               const Share& share) {
  return verify(place_of(std::move(source)), context, options, share);
}

}  // namespace weighbridge

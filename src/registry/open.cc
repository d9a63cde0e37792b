// SPDX-License-Identifier: Apache-2.0
// open(): the walker stops at the first error, which becomes the exception.
#include "weighbridge/open.h"

#include <utility>

#include "core/writing/options.h"
#include "registry/load.h"

namespace weighbridge {

std::vector<std::string_view> checksum_forms() { return core::checksum_form_names(); }

namespace {

constexpr core::Bound<OpenOptions> kBound[] = {
#define WB_OPEN_OPTION(MEMBER, ...) WB_BOUND(OpenOptions, MEMBER)
#include "core/writing/option_rows.def"
};

}  // namespace

void OpenOptions::set(std::string_view option, std::string_view text) {
  core::set<OpenOptions>(*this, OptionOf::open, kBound, option, text);
}

std::optional<Model> open(std::shared_ptr<const Place> place, Report& report, const Context& context,
                          const OpenOptions& options) {
  Report own;
  core::Findings findings(own, core::Findings::Mode::first_error);
  core::NamedFiles files;
  findings.keep_files(&files);
  std::optional<Model> model;
  try {
    registry::Loaded loaded = registry::load(place, context, options, findings);
    registry::drop_read_as(loaded, own);
    model = std::move(loaded.model);
  } catch (const core::Stop&) {
    model.reset();
  }
  files.place(own, model ? model->sources() : Model().sources());
  report.append(own);
  return model;
}

Model open(std::shared_ptr<const Place> place, const Context& context, const OpenOptions& options) {
  Report report;
  auto model = open(std::move(place), report, context, options);
  if (!model) throw Error(*report.first_error());
  return *std::move(model);
}

std::optional<Model> open(const std::string& path, Report& report, const Context& context, const OpenOptions& options) {
  return open(place_at(path, options.access), report, context, options);
}
Model open(const std::string& path, const Context& context, const OpenOptions& options) {
  return open(place_at(path, options.access), context, options);
}

std::optional<Model> open(std::shared_ptr<const Source> source, Report& report, const Context& context,
                          const OpenOptions& options) {
  return open(place_of(std::move(source)), report, context, options);
}
Model open(std::shared_ptr<const Source> source, const Context& context, const OpenOptions& options) {
  return open(place_of(std::move(source)), context, options);
}

}  // namespace weighbridge

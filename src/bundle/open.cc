// SPDX-License-Identifier: Apache-2.0
// open() of a path: a file by the registry, a folder by its bundle.
#include "weighbridge/open.h"

#include <utility>

#include "bundle/bundle.h"
#include "bundle/huggingface/format.h"

namespace weighbridge {

std::optional<Model> open(const std::string& path, Report& report, const Context& context, const OpenOptions& options) {
  const auto folder = bundle::folder_at(path, options);
  if (!folder) return open(open_file(path, options.access), report, context, options);
  Report own;
  core::Findings findings(own, core::Findings::Mode::first_error);
  std::optional<Model> model;
  try {
    model = huggingface::load(*folder, context, findings);
  } catch (const core::Stop&) {
    model.reset();
  }
  if (model) core::place_files(own, *model);
  report.append(own);
  return model;
}

Model open(const std::string& path, const Context& context, const OpenOptions& options) {
  Report report;
  auto model = open(path, report, context, options);
  if (!model) throw Error(*report.first_error());
  return *std::move(model);
}

}  // namespace weighbridge

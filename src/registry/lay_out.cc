// SPDX-License-Identifier: Apache-2.0
// Lays out a folder together with the files of weights in it.
#include "registry/lay_out.h"

#include <iterator>
#include <tuple>
#include <utility>

#include "registry/registry.h"

namespace weighbridge::registry {
namespace {

template <class T> void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::move_iterator(from.begin()), std::move_iterator(from.end()));
}

}  // namespace

core::WriteLayout lay_out(const core::Format& format, const Model& model, const Options& options,
                          const Context& context) {
  core::WriteLayout out = format.layout(model, options, context);
  if (!out.folder || !out.folder->inner) return out;
  core::OutFolder& folder = *out.folder;
  const core::Inner inner = *std::exchange(folder.inner, std::nullopt);
  const core::Format& files = *find(inner.format);
  core::WriteLayout made = files.layout_files(inner.model, options, context);
  append(out.blockers, std::move(made.blockers));
  append(out.losses, std::move(made.losses));
  append(out.changes, std::move(made.changes));
  append(out.uninterpreted, std::move(made.uninterpreted));  // the inner model has the same tensors in the same order
  out.keep = std::make_shared<const std::tuple<Model, std::shared_ptr<const void>, std::shared_ptr<const void>>>(
      inner.model, out.keep, made.keep);
  folder.format = made.folder->format;
  folder.payloads = std::move(made.folder->payloads);
  folder.last = std::move(made.folder->last);
  folder.stale = made.folder->stale;
  append(made.folder->small, std::move(folder.small));  // removals of the inner layout come first
  folder.small = std::move(made.folder->small);
  return out;
}

}  // namespace weighbridge::registry

// SPDX-License-Identifier: Apache-2.0
// The public list of formats, weighbridge/formats.h.
#include "weighbridge/formats.h"

#include <algorithm>
#include <vector>

#include "base/fail.h"
#include "core/rules.h"
#include "registry/registry.h"

namespace weighbridge {

std::span<const FormatInfo> formats() noexcept {
  static const std::vector<FormatInfo> infos = [] {
    std::vector<FormatInfo> out;
    for (const core::Format* format : registry::formats()) out.push_back(format->info);
    return out;
  }();
  return infos;
}

const FormatInfo* find_format(std::string_view name) noexcept {
  const auto all = formats();
  const auto found = std::ranges::find(all, name, &FormatInfo::name);
  return found == all.end() ? nullptr : &*found;
}

const FormatInfo* format_for_extension(std::string_view extension) noexcept {
  for (const FormatInfo& format : formats())
    if (format.writes && std::ranges::find(format.extensions, extension) != format.extensions.end()) return &format;
  return nullptr;
}

Digest zt_content_digest(const Model& model) {
  const core::Format* const format = registry::find(model.format());
  if (format == nullptr || format->identity == nullptr)
    base::misuse("identity", "only a zTensor 2 file has this content digest: convert the model to zt2 first");
  return format->identity(model);
}

std::span<const Rule> common_rules() noexcept { return core::rules::kAll; }

}  // namespace weighbridge

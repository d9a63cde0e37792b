// SPDX-License-Identifier: Apache-2.0
// The descriptor of STB.
#include "formats/stb/format.h"

#include <algorithm>

#include "formats/stb/layout.h"

namespace weighbridge::stb {
namespace {

constexpr std::string_view kExtensions[] = {"stb"};
constexpr std::string_view kVersions[] = {"0.1"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw};

}  // namespace

bool matches(const core::Probe& probe) {
  return probe.head.size() >= kMagic.size() &&
         std::ranges::equal(probe.head.first(kMagic.size()), std::as_bytes(std::span(kMagic)));
}

constexpr core::Format kFormat = {
    .info = {.name = "stb",
             .title = "STB",
             .extensions = kExtensions,
             .versions = "0.1",
             .holds = {.dtypes = kDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "none",
                       .max_tensors = kMaxTensors},
             .rules = rules::kAll},
    .written = {.versions = kVersions, .other_version = "STB is written as version 0.1, not {}"},
    .matches = matches,
    .read = read,
    .layout = layout,
};

}  // namespace weighbridge::stb

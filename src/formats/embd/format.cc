// SPDX-License-Identifier: Apache-2.0
// The descriptor of EMBD.
#include "formats/embd/format.h"

#include <cstring>

#include "core/writing/options.h"
#include "formats/embd/layout.h"

namespace weighbridge::embd {
namespace {

constexpr std::string_view kExtensions[] = {"weights"};
constexpr std::string_view kVersions[] = {"1", "1.0"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr auto kOptions = core::names_of_format<core::count_of_format("embd")>("embd");

}  // namespace

bool matches(const core::Probe& probe) {
  return probe.head.size() >= sizeof kMagic && std::memcmp(probe.head.data(), kMagic, sizeof kMagic) == 0;
}

constexpr core::Format kFormat = {
    .info = {.name = "embd",
             .title = "EMBD .weights",
             .extensions = kExtensions,
             .versions = "1.0",
             .holds = {.dtypes = kDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "text",
                       .tokenizer = true,
                       .max_tensors = UINT32_MAX},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.versions = kVersions, .other_version = "EMBD files are written as version 1.0, not {}"},
    .matches = matches,
    .read = read,
    .check_content = check_content,
    .content_can_fail = true,
    .layout = layout,
};

}  // namespace weighbridge::embd

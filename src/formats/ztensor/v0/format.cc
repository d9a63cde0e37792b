// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 0.1.
#include "formats/ztensor/v0/format.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/payload/content.h"
#include "core/writing/options.h"
#include "formats/ztensor/v0/layout.h"

namespace weighbridge::ztensor0 {
namespace {

constexpr std::string_view kVersions[] = {"0.1"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw, Encoding::zstd};
constexpr auto kOptions = core::names_of_format<core::count_of_format("zt0")>("zt0");
constexpr std::string_view kDigests[] = {"sha256", "crc32c"};
constexpr auto kHeldDTypes = [] {
  std::array<DType, std::size(kDTypes)> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = kDTypes[i].dtype;
  return out;
}();

}  // namespace

bool matches(const core::Probe& probe) {
  return probe.head.size() >= kFamily.size() &&
         std::ranges::equal(probe.head.first(kFamily.size()), std::as_bytes(std::span(kFamily)));
}

constexpr core::Format kFormat = {
    .info = {.name = "zt0",
             .title = "zTensor 0.1",
             .extensions = {},  // its files are .zt too, but an output named .zt is zTensor 1.x
             .versions = "0.1",
             .holds = {.dtypes = kHeldDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .digests = kDigests,
                       .attributes = "any value of a tensor, none of the file"},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.versions = kVersions, .other_version = "zTensor 0.1 files have the version 0.1, not {}"},
    .matches = matches,
    .read = read,
    .check_content = core::check_alone<check_share>,
    .check_share = check_share,
    .content_can_fail = true,
    .layout = layout,
};

}  // namespace weighbridge::ztensor0

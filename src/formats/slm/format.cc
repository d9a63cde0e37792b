// SPDX-License-Identifier: Apache-2.0
// The descriptor of SLM.
#include "formats/slm/format.h"

#include <algorithm>

#include "core/writing/options.h"
#include "formats/slm/layout.h"

namespace weighbridge::slm_format {
namespace {

constexpr std::string_view kExtensions[] = {"slm"};
constexpr DType kDTypes[] = {DType::f32};
constexpr std::string_view kVersions[] = {"1"};
constexpr Layout kLayouts[] = {Layout::dense, Layout::quantized_row, Layout::quantized_block};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr auto kOptions = core::names_of_format<core::count_of_format("slm")>("slm");

}  // namespace

bool matches(const core::Probe& probe) {
  const auto magic = std::as_bytes(std::span(kMagic));
  return probe.head.size() >= magic.size() && std::ranges::equal(probe.head.first(magic.size()), magic);
}

constexpr core::Format kFormat = {
    .info = {.name = "slm",
             .title = "TinyRustLM .slm",
             .extensions = kExtensions,
             .versions = "1",
             .holds = {.dtypes = kDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "the header's fields (slm.*)",
                       .names = false,
                       .tokenizer = true,
                       .max_tensors = UINT32_MAX},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.versions = kVersions,
                .other_version = "an .slm is written as version 1, not {}",
                .quantizes = [](std::string_view type) { return stored_from_name(type).has_value(); },
                .other_quantization = "an .slm has no quantization {}: q8_0 and q4_0 are those it has"},
    .matches = matches,
    .read = read,
    .check_content = check_content,
    .content_can_fail = true,
    .layout = layout,
};

}  // namespace weighbridge::slm_format

// SPDX-License-Identifier: Apache-2.0
// The descriptor of adapter packages. A package is made from a base model and deltas, not by converting a file.
#include "formats/slm_adapter/format.h"

#include <algorithm>

namespace weighbridge::slm_adapter {
namespace {

constexpr std::string_view kExtensions[] = {"adp1", "asp1", "alr1"};
constexpr Layout kLayouts[] = {Layout::dense, Layout::structural};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr DType kDTypes[] = {DType::f32, DType::u64};

bool matches(const core::Probe& probe) {
  if (probe.head.size() < 4) return false;
  const std::string_view magic(reinterpret_cast<const char*>(probe.head.data()), 4);
  return std::ranges::find(kMagics, magic) != std::end(kMagics);
}

}  // namespace

constexpr core::Format kFormat = {
    .info = {.name = "slm-adapter",
             .title = "SLM adapter package",
             .extensions = kExtensions,
             .versions = "ADP1, ASP1, ALR1 of src/formats/slm_adapter/README.md",
             .writes = false,
             .holds = {.dtypes = kDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "the identity of its base model",
                       .names = false,
                       .max_tensors = UINT32_MAX},
             .rules = rules::kAll},
    .matches = matches,
    .read = read,
    .check_content = check_content,
    .content_can_fail = true,
};

}  // namespace weighbridge::slm_adapter

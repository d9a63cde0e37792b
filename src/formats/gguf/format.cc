// SPDX-License-Identifier: Apache-2.0
// The descriptor of GGUF.
#include "formats/gguf/format.h"

#include <algorithm>
#include <cstring>

#include "core/writing/options.h"
#include "formats/gguf/layout.h"

namespace weighbridge::gguf {
namespace {

constexpr std::string_view kExtensions[] = {"gguf"};
constexpr auto kOptions = core::names_of_format<core::count_of_format("gguf")>("gguf");
constexpr std::string_view kStructural[] = {kAlignment, kSplitPrefix, kPadding};
constexpr std::string_view kMarkerFiles[] = {kWholeName, "*-00001-of-*.gguf"};
constexpr std::string_view kVersions[] = {"3"};
constexpr Layout kLayouts[] = {Layout::dense, Layout::quantized_block};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr DType kHeldDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64,
                                 DType::i8,  DType::i16, DType::i32,  DType::i64};

}  // namespace

bool matches(const core::Probe& probe) {
  if (probe.folder) return probe.lists(kWholeName) || std::ranges::any_of(probe.listing, is_part);
  return probe.head.size() >= kMagic.size() && std::memcmp(probe.head.data(), kMagic.data(), kMagic.size()) == 0;
}

constexpr core::Format kFormat = {
    .info = {.name = "gguf",
             .title = "GGUF",
             .extensions = kExtensions,
             .versions = "2 and 3, little- and big-endian",
             .holds = {.dtypes = kHeldDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "typed values and arrays",
                       .tokenizer = true},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.versions = kVersions,
                .other_version = "GGUF is written as version 3, not {}",
                .quantizes = quantizes_to,
                .other_quantization = "GGUF cannot be quantized to {}"},
    .matches = matches,
    .read = read,
    .read_files = read_files,
    .spans_files = spans_files,
    .warn_alone = warn_alone,
    .marker_files = kMarkerFiles,
    .layout = layout,
    .new_header = new_header,
    .structural_keys = kStructural,
};

}  // namespace weighbridge::gguf

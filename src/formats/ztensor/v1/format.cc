// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 1.x.
#include "formats/ztensor/v1/format.h"

#include <algorithm>

#include "core/payload/content.h"
#include "core/writing/options.h"
#include "formats/ztensor/v1/layout.h"

namespace weighbridge::ztensor1 {
namespace {

constexpr std::string_view kExtensions[] = {"zt"};
constexpr std::string_view kVersions[] = {"1.1", "1.1.0", "1.2", "1.2.0"};
constexpr Layout kLayouts[] = {Layout::dense,           Layout::sparse_csr,    Layout::sparse_coo,
                               Layout::quantized_group, Layout::quantized_row, Layout::quantized_block};
constexpr Encoding kEncodings[] = {Encoding::raw, Encoding::zstd};
constexpr auto kOptions = core::names_of_format<core::count_of_format("zt")>("zt");
constexpr std::string_view kDigests[] = {"sha256", "crc32c"};

bool is_magic(std::span<const std::byte> bytes) noexcept {
  return std::ranges::equal(
      bytes, kMagic, {}, [](std::byte b) { return std::to_integer<unsigned char>(b); },
      [](char c) { return static_cast<unsigned char>(c); });
}

// These say what other metadata are.
constexpr std::string_view kStructural[] = {kTypesKey, kTokenizerKey};

}  // namespace

bool matches(const core::Probe& probe) {
  return (probe.head.size() >= kMagicSize && is_magic(probe.head.first(kMagicSize))) ||
         (probe.tail.size() >= kMagicSize && is_magic(probe.tail.last(kMagicSize)));
}

constexpr core::Format kFormat = {
    .info = {.name = "zt",
             .title = "zTensor 1.x",
             .extensions = kExtensions,
             .versions = "1.1, keys of 1.2",
             .holds = {.dtypes = kDtypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .digests = kDigests,
                       .attributes = "any value (as text in version 1.1, with its type beside it)",
                       .tokenizer = true},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.versions = kVersions,
                .other_version = "zTensor files are written as version 1.1 or 1.2, not {}",
                .other_quantization = "zTensor 1.x files are not written with the quantization {}"},
    .matches = matches,
    .read = read,
    .check_content = core::check_alone<check_share>,
    .check_share = check_share,
    .content_can_fail = true,
    .layout = layout,
    .append = append,
    .new_header = new_header,
    .structural_keys = kStructural,
};

}  // namespace weighbridge::ztensor1

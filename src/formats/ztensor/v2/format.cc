// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 2.
#include "formats/ztensor/v2/format.h"

#include <algorithm>
#include <array>

#include "core/payload/content.h"
#include "core/reading/shards.h"
#include "core/writing/options.h"
#include "formats/ztensor/v2/layout.h"

namespace weighbridge::ztensor2 {
namespace {

constexpr std::string_view kVersions[] = {"2"};
constexpr Layout kLayouts[] = {Layout::dense,           Layout::sparse_csr,    Layout::sparse_coo,
                               Layout::quantized_group, Layout::quantized_row, Layout::quantized_block};
constexpr Encoding kEncodings[] = {Encoding::raw, Encoding::zstd_seekable};
constexpr auto kOptions = core::names_of_format<core::count_of_format("zt2")>("zt2");
constexpr std::string_view kMarkerFiles[] = {"model.zt with model-00001-of-*.zt"};
constexpr std::string_view kDigests[] = {"sha256", "xxh3"};
constexpr auto kHeldDTypes = [] {
  std::array<DType, kStorage.size() + kLogicalTypes.size()> out{};
  std::size_t n = 0;
  for (const DType dtype : kStorage) out[n++] = dtype;
  for (const LogicalType& row : kLogicalTypes) out[n++] = row.logical;
  return out;
}();

bool is_magic(std::span<const std::byte> bytes) noexcept {
  return std::ranges::equal(bytes, std::as_bytes(std::span(kMagic)));
}

}  // namespace

bool matches(const core::Probe& probe) {
  if (probe.folder)
    return probe.lists(kWholeName) && std::ranges::any_of(probe.listing, [](std::string_view file) {
             const auto name = core::parse_shard_name(file, ".zt");
             return name && name->stem == kStem && name->number == 1;
           });
  return (probe.head.size() >= kMagicSize && is_magic(probe.head.first(kMagicSize))) ||
         (probe.tail.size() >= kMagicSize && is_magic(probe.tail.last(kMagicSize)));
}

constexpr core::Format kFormat = {
    .info = {.name = "zt2",
             .title = "zTensor 2",
             .extensions = {},  // its files are .zt too, but an output named .zt is zTensor 1.x
             .versions = "2 (Draft 4)",
             .holds = {.dtypes = kHeldDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .digests = kDigests,
                       .attributes = "any value",
                       .tokenizer = true},
             .options = kOptions,
             .rules = rules::kAll},
    .written = {.versions = kVersions,
                .other_version = "zTensor 2 files are written as version 2, not {}",
                .other_quantization = "zTensor 2 files are not written with the quantization {}"},
    .matches = matches,
    .read = read,
    .read_files = read_files,
    .marker_files = kMarkerFiles,
    .check_content = core::check_alone<check_share>,
    .check_share = check_share,
    .content_can_fail = true,
    .layout = layout,
    .identity = content_identity,
};

}  // namespace weighbridge::ztensor2

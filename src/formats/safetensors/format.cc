// SPDX-License-Identifier: Apache-2.0
// The descriptor of safetensors.
#include "formats/safetensors/format.h"

#include <algorithm>
#include <array>

#include "base/endian.h"
#include "core/writing/options.h"
#include "formats/safetensors/layout.h"

namespace weighbridge::safetensors {
namespace {

constexpr std::string_view kExtensions[] = {"safetensors"};
constexpr auto kOptions = core::names_of_format<core::count_of_format("safetensors")>("safetensors");
constexpr std::string_view kMarkerFiles[] = {kWholeName, "*.safetensors.index.json"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr auto kHeldDTypes = [] {
  std::array<DType, kDTypeRanks> out{};
  for (std::size_t i = 0; i < kDTypeRanks; ++i) out[i] = kDTypes[i].dtype;
  return out;
}();

}  // namespace

bool matches(const core::Probe& probe) {
  if (probe.folder) return probe.lists(kWholeName) || std::ranges::any_of(probe.listing, is_index_name);
  if (spans_files(probe)) return true;
  if (probe.head.size() <= kLengthSize || probe.head[kLengthSize] != std::byte{'{'}) return false;
  const auto length = base::load_le<std::uint64_t>(probe.head.data());
  return length >= kMinHeader && length <= kMaxHeader;
}

constexpr core::Format kFormat = {
    .info = {.name = "safetensors",
             .title = "safetensors",
             .extensions = kExtensions,
             .versions = "as package 0.8 reads and writes it",
             .holds = {.dtypes = kHeldDTypes, .layouts = kLayouts, .encodings = kEncodings, .attributes = "text"},
             .options = kOptions,
             .rules = rules::kAll},
    .matches = matches,
    .read = read,
    .read_files = read_files,
    .spans_files = spans_files,
    .warn_alone = warn_alone,
    .marker_files = kMarkerFiles,
    .check_content = check_content,
    .layout = layout,
    .layout_files = layout_files,
    .new_header = new_header,
};

}  // namespace weighbridge::safetensors

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
constexpr std::string_view kSigns[] = {kWholeName, "*.safetensors.index.json"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr auto kHeldDTypes = [] {
  std::array<DType, kDTypeRanks> out{};
  for (std::size_t i = 0; i < kDTypeRanks; ++i) out[i] = kDTypes[i].dtype;
  return out;
}();

}  // namespace

bool matches(const core::Glance& glance) {
  if (glance.folder) return glance.lists(kWholeName) || std::ranges::any_of(glance.listing, is_index_name);
  if (spreads(glance)) return true;
  if (glance.head.size() <= kLengthSize || glance.head[kLengthSize] != std::byte{'{'}) return false;
  const auto length = base::load_le<std::uint64_t>(glance.head.data());
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
    .spreads = spreads,
    .remark = remark,
    .signs = kSigns,
    .check_content = check_content,
    .layout = layout,
    .layout_files = layout_files,
    .new_header = new_header,
};

}  // namespace weighbridge::safetensors

// SPDX-License-Identifier: Apache-2.0
// The descriptors of npy and npz. An npz is a zip archive like any other, so it is recognized by its extension or first
// member.
#include "formats/numpy/format.h"

#include <array>

#include "core/model/numpy_types.h"
#include "formats/numpy/layout.h"

namespace weighbridge::numpy {
namespace {

constexpr std::string_view kNpyExtensions[] = {"npy"}, kNpzExtensions[] = {"npz"};
constexpr std::string_view kVersions[] = {"1.0"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kNpyEncodings[] = {Encoding::raw}, kNpzEncodings[] = {Encoding::raw, Encoding::deflate};
constexpr auto kHeldDTypes = [] {
  std::array<DType, core::kNumpyTypeCount> out{};
  for (std::size_t i = 0; i < core::kNumpyTypeCount; ++i) out[i] = core::kNumpyTypes[i].dtype;
  return out;
}();

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_npy(const core::Probe& probe) { return text_of(probe.head).starts_with(kMagic); }

bool is_npz(const core::Probe& probe) {
  const std::string_view head = text_of(probe.head);
  if (probe.extension == kNpzExtensions[0] && (head.starts_with(core::kZipMember) || head.starts_with(core::kZipEmpty)))
    return true;
  const std::string_view first = core::first_zip_member(head);
  return first.ends_with(kSuffix) && first.size() > kSuffix.size();
}

}  // namespace

constexpr core::Format kNpy = {
    .info = {.name = "npy",
             .title = "NumPy array",
             .extensions = kNpyExtensions,
             .versions = "1.0, 2.0, 3.0",
             .holds = {.dtypes = kHeldDTypes,
                       .layouts = kLayouts,
                       .encodings = kNpyEncodings,
                       .attributes = "none",
                       .names = false,
                       .max_tensors = 1},
             .rules = npy::kAll},
    .written = {.versions = kVersions, .other_version = "arrays are written as version 1.0, not {}"},
    .matches = is_npy,
    .read = read_npy,
    .check_content = check_npy,
    .content_can_fail = true,
    .layout = layout_npy,
};

constexpr core::Format kNpz = {
    .info = {.name = "npz",
             .title = "NumPy archive",
             .extensions = kNpzExtensions,
             .versions = "zip, with zip64, of arrays 1.0, 2.0, 3.0",
             .holds = {.dtypes = kHeldDTypes, .layouts = kLayouts, .encodings = kNpzEncodings, .attributes = "none"},
             .rules = npz::kAll},
    .written = {.versions = kVersions, .other_version = "arrays are written as version 1.0, not {}"},
    .matches = is_npz,
    .read = read_npz,
    .check_content = check_npz,
    .content_can_fail = true,
    .layout = layout_npz,
};

}  // namespace weighbridge::numpy

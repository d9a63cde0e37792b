// SPDX-License-Identifier: Apache-2.0
// The descriptor of PyTorch's checkpoints.
#include "formats/pytorch/format.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/endian.h"
#include "core/archive/pickle_scan.h"
#include "core/archive/zip.h"
#include "formats/pytorch/archive.h"
#include "formats/pytorch/layout.h"

namespace weighbridge::pytorch {
namespace {

constexpr std::string_view kExtensions[] = {"pt", "pth", "ckpt"};
constexpr std::string_view kVersions[] = {"3"};
constexpr Layout kLayouts[] = {Layout::dense, Layout::sparse_csr, Layout::sparse_coo};
constexpr Encoding kEncodings[] = {Encoding::raw};
constexpr std::size_t kHeldCount = [] {
  std::size_t out = 0;
  for (const ElementType& each : kTypes) out += each.dtype != DType::unknown ? 1 : 0;
  return out;
}();
constexpr auto kHeldDTypes = [] {
  std::array<DType, kHeldCount> out{};
  std::size_t n = 0;
  for (const ElementType& each : kTypes)
    if (each.dtype != DType::unknown) out[n++] = each.dtype;
  return out;
}();

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An archive with PyTorch's pickle in any folder, or with other pickles, whose effects verify then reports.
bool is_archive(const core::Probe& probe) {
  constexpr std::string_view kEnds[] = {"data.pkl", ".pkl", ".pickle", ".joblib"};
  const auto named_pickle = [&](std::string_view name) {
    return std::ranges::any_of(kEnds, [&](std::string_view end) { return core::ends_with_ignoring_case(name, end); });
  };
  if (std::ranges::any_of(probe.members, named_pickle)) return true;
  const std::string_view head = text_of(probe.head), name = core::first_zip_member(head);
  if (named_pickle(name)) return true;
  if (name.empty()) return false;
  const std::size_t data =
      core::zip::kLocalSize + name.size() + base::load_record<core::zip::LocalRecord>(head.data()).extra;
  return data < head.size() && core::may_be_pickle({}, head.substr(data, 8));
}

// One of the members that the archives of the first versions have.
bool is_tar(std::string_view head) {
  std::string_view name = head.substr(0, std::min(head.find('\0'), head.size()));
  if (name.starts_with("./")) name.remove_prefix(2);
  constexpr std::string_view kMembers[] = {"sys_info", "pickle", "storages", "tensors"};
  return std::ranges::find(kMembers, name) != std::end(kMembers);
}

bool matches(const core::Probe& probe) {
  if (probe.folder || probe.head.empty()) return false;
  if (spans_files(probe)) return true;
  switch (form_of(text_of(probe.head))) {
    case Form::archive: return is_archive(probe);
    case Form::legacy: return true;
    case Form::tar: return is_tar(text_of(probe.head));
    case Form::pickle: return is_pickle(text_of(probe.head), probe.size, probe.extension);
  }
  return false;
}

}  // namespace

constexpr core::Format kFormat = {
    .info = {.name = "pytorch",
             .title = "PyTorch checkpoint",
             .extensions = kExtensions,
             .versions = "archives of PyTorch 1.6 and later, the older format, pickles",
             .holds = {.dtypes = kHeldDTypes, .layouts = kLayouts, .encodings = kEncodings, .attributes = "any value"},
             .rules = rules::kAll},
    .written = {.versions = kVersions, .other_version = "PyTorch's archives are written as version 3, not {}"},
    .matches = matches,
    .read = read,
    .read_files = read_files,
    .spans_files = spans_files,
    .warn_alone = warn_alone,
    .check_content = check_content,
    .content_can_fail = true,
    .layout = layout,
};

}  // namespace weighbridge::pytorch

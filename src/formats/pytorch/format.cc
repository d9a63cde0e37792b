// SPDX-License-Identifier: Apache-2.0
// The descriptor of PyTorch's checkpoints.
#include "formats/pytorch/format.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/endian.h"
#include "core/pickle_globals.h"
#include "core/pickle_scan.h"
#include "core/zip.h"
#include "formats/pytorch/archive.h"
#include "formats/pytorch/layout.h"
#include "formats/pytorch/rules.h"

namespace weighbridge::pytorch {
namespace {

constexpr std::string_view kExtensions[] = {"pt", "pth", "ckpt"};
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

// This many values of a pickle in the first bytes of a longer file are not a coincidence.
constexpr wire::Pickle::Ref kSure = 16;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An archive with the pickle of PyTorch in any folder, or with other pickles, so that what they would do is reported.
bool is_archive(const core::Glance& glance) {
  constexpr std::string_view kEnds[] = {"data.pkl", ".pkl", ".pickle", ".joblib"};
  const auto is_pickle = [&](std::string_view name) {
    return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
  };
  if (std::ranges::any_of(glance.members, is_pickle)) return true;
  const std::string_view head = text_of(glance.head), name = core::first_zip_member(head);
  if (is_pickle(name)) return true;
  constexpr std::size_t kLocalHeader = 30, kExtraAt = 28;
  if (name.empty()) return false;
  const std::size_t data = kLocalHeader + name.size() + base::load_le<std::uint16_t>(head.data() + kExtraAt);
  return data < head.size() && core::may_be_pickle({}, head.substr(data, 8));
}

// One of the members that the archives of the first versions have.
bool is_tar(std::string_view head) {
  std::string_view name = head.substr(0, std::min(head.find('\0'), head.size()));
  if (name.starts_with("./")) name.remove_prefix(2);
  constexpr std::string_view kMembers[] = {"sys_info", "pickle", "storages", "tensors"};
  return std::ranges::find(kMembers, name) != std::end(kMembers);
}

// Protocols 2 and above begin with their number. Those below are text, so the name of the file must say it, too.
bool is_pickle(const core::Glance& glance) {
  constexpr std::string_view kNames[] = {"pkl",  "pickle", "joblib", "pt",  "pth", "bin",
                                         "ckpt", "p",      "pck",    "dat", "data"};
  const std::string_view head = text_of(glance.head);
  const bool numbered = core::may_be_pickle({}, head);
  if (!numbered && std::ranges::find(kNames, glance.extension) == std::end(kNames)) return false;
  constexpr std::uint64_t kMemory = std::uint64_t{1} << 20;
  const wire::PickleInput input = core::input_of(head);
  const wire::Pickle pickle = wire::Pickle::read(input, 0, kMemory);
  const wire::PickleError& error = pickle.error();
  if (numbered) return pickle.ok() || error.offset > 2 || error.fault == wire::PickleFault::end;
  if (pickle.ok()) return true;
  return std::ranges::any_of(
             pickle.globals(),
             [&](const wire::Pickle::Global& each) { return core::could_be_global(pickle, each.ref); }) ||
         (error.fault == wire::PickleFault::end && head.size() < glance.size && pickle.count() > kSure);
}

bool matches(const core::Glance& glance) {
  if (glance.folder || glance.head.empty()) return false;
  if (spreads(glance)) return true;
  switch (form_of(text_of(glance.head))) {
    case Form::archive: return is_archive(glance);
    case Form::legacy: return true;
    case Form::tar: return is_tar(text_of(glance.head));
    case Form::pickle: return is_pickle(glance);
  }
  return false;
}

}  // namespace

constexpr core::Format kFormat = {
    .info = {.name = "pytorch",
             .title = "PyTorch checkpoint",
             .extensions = kExtensions,
             .versions = "archives of PyTorch 1.6 and later, the older format, pickles",
             .reads = true,
             .writes = true,
             .holds = {.dtypes = kHeldDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .digests = {},
                       .attributes = "any value",
                       .names = true,
                       .tokenizer = false,
                       .max_tensors = UINT64_MAX},
             .options = {},
             .rules = rules::kAll},
    .matches = matches,
    .read = read,
    .read_files = read_files,
    .spreads = spreads,
    .check_content = check_content,
    .content_can_fail = true,
    .layout = layout,
    .append = nullptr,
};

}  // namespace weighbridge::pytorch

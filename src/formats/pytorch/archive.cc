// SPDX-License-Identifier: Apache-2.0
// Which form a checkpoint has, and which members PyTorch finds in an archive. PyTorch ignores ASCII case when it looks
// up members (mz_zip_reader_locate_file of miniz), and does not read members whose attributes say that they are
// folders.
#include "formats/pytorch/archive.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "core/archive/pickle_globals.h"
#include "core/archive/pickle_scan.h"
#include "core/model/words.h"

namespace weighbridge::pytorch {
namespace {

char folded(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same_folded(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, folded, folded); }
bool starts_folded(std::string_view name, std::string_view begin) {
  return name.size() >= begin.size() && same_folded(name.substr(0, begin.size()), begin);
}
std::string_view folder_of(std::string_view name) noexcept { return name.substr(0, name.find('/') + 1); }

// The members that PyTorch looks up by these names, and the folders of storages.
constexpr std::string_view kLookedUp[] = {kDataPickle, kConstantsPickle, kVersion, kByteOrder};
constexpr std::string_view kStorageFolders[] = {kStorages, kConstantStorages};

class Names {
 public:
  Names(const core::Zip& zip, core::Findings& findings)
      : members_(zip.members),
        findings_(findings),
        tops_{top_folder(zip), members_.empty() ? std::string_view() : folder_of(members_[0].name)} {}

  bool check() {
    for (const core::ZipMember& each : members_)
      if (!check_one(each)) return false;
    std::vector<std::uint32_t> order(members_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const std::string_view one = members_[a].name, other = members_[b].name;
      return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(),
                                          [](char x, char y) { return folded(x) < folded(y); });
    });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (!check_pair(members_[order[i - 1]], members_[order[i]])) return false;
    return true;
  }

 private:
  // The name relative to the folder that PyTorch reads; empty if the member is elsewhere.
  std::string_view below_top(std::string_view name) const {
    for (const std::string_view top : tops_)
      if (!top.empty() && starts_folded(name, top)) return name.substr(top.size());
    return {};
  }
  bool is_read(std::string_view name) const {
    const std::string_view below = below_top(name);
    return std::ranges::any_of(kLookedUp, [&](std::string_view each) { return same_folded(below, each); }) ||
           std::ranges::any_of(kStorageFolders, [&](std::string_view each) { return starts_folded(below, each); });
  }

  bool check_one(const core::ZipMember& member) {
    const core::At at{.offset = member.entry_at};
    if ((member.folder_attribute || member.name.ends_with('/')) && (member.size > 0 || member.stored > 0))
      return findings_.fail(rules::kMemberFolder, at, {}, core::in_quotes(member.name));
    for (const std::string_view each : kLookedUp) {
      const std::string_view below = below_top(member.name);
      if (!same_folded(below, each) || (below == each && exact_top(member.name))) continue;
      return findings_.fail(rules::kMemberCase, at, core::in_quotes(each, core::kWhole), core::in_quotes(member.name));
    }
    return true;
  }
  // In the folder that this program reads.
  bool exact_top(std::string_view name) const {
    return tops_[0].empty() || !starts_folded(name, tops_[0]) || name.starts_with(tops_[0]);
  }

  bool check_pair(const core::ZipMember& one, const core::ZipMember& other) {
    if (!same_folded(one.name, other.name)) return true;
    const bool read = is_read(one.name);
    findings_.report(read ? rules::kMemberCase : rules::kMemberCaseBeside, {.offset = other.entry_at}, {},
                     core::in_quotes(other.name), {"it is beside ", core::in_quotes(one.name)});
    return !read;
  }

  const std::vector<core::ZipMember>& members_;
  core::Findings& findings_;
  const std::string_view tops_[2];
};

}  // namespace

Form form_of(std::string_view head) {
  constexpr std::size_t kTarAt = 257;
  if (head.starts_with(core::kZipMember) || head.starts_with(core::kZipEmpty)) return Form::archive;
  if (head.size() > kTarAt && head.substr(kTarAt).starts_with("ustar")) return Form::tar;
  const wire::PickleInput input = core::input_of(head.substr(0, kHead));
  const wire::Pickle magic = wire::Pickle::read(input, 0, std::uint64_t{1} << 20);
  if (!magic.ok()) return Form::pickle;
  const wire::PickleKind kind = magic.kind(magic.root());
  const bool legacy = (kind == wire::PickleKind::long_bytes && magic.text(magic.root()) == kMagic) ||
                      (kind == wire::PickleKind::long_text && magic.text(magic.root()) == kMagicText);
  return legacy ? Form::legacy : Form::pickle;
}

bool is_pickle(std::string_view head, std::uint64_t size, std::string_view extension) {
  constexpr std::string_view kNames[] = {"pkl",  "pickle", "joblib", "pt",  "pth", "bin",
                                         "ckpt", "p",      "pck",    "dat", "data"};
  // So many values of a pickle in the first bytes of a longer file are no coincidence.
  constexpr wire::Pickle::Ref kSure = 16;
  constexpr std::uint64_t kMemory = std::uint64_t{1} << 20;
  const wire::PickleInput input = core::input_of(head);
  const wire::Pickle pickle = wire::Pickle::read(input, 0, kMemory);
  const wire::PickleError& error = pickle.error();
  if (core::may_be_pickle({}, head)) return pickle.ok() || error.offset > 2 || error.fault == wire::PickleFault::end;
  const bool named = std::ranges::find(kNames, extension) != std::end(kNames);
  if (named && pickle.ok()) return true;
  if (core::does_something(pickle)) return true;
  return named && (std::ranges::any_of(
                       pickle.globals(),
                       [&](const wire::Pickle::Global& each) { return core::could_be_global(pickle, each.ref); }) ||
                   (error.fault == wire::PickleFault::end && head.size() < size && pickle.count() > kSure));
}

std::string_view top_folder(const core::Zip& zip) noexcept {
  std::string_view out;
  for (const core::ZipMember& member : zip.members) {
    const std::string_view folder = folder_of(member.name);
    if (folder.empty() || member.name.substr(folder.size()) != kDataPickle) continue;
    // PyTorch reads the folder of the first member.
    if (same_folded(folder, folder_of(zip.members[0].name))) return folder;
    if (out.empty()) out = folder;
  }
  return out;
}

bool check_members(const core::Zip& zip, core::Findings& findings) { return Names(zip, findings).check(); }

}  // namespace weighbridge::pytorch

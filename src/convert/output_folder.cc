// SPDX-License-Identifier: Apache-2.0
// Creates, fills, checks and, after a failure, removes an output folder.
#include "convert/output_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/checked.h"
#include "base/fail.h"
#include "core/writing/layout.h"
#include "io/fd.h"
#include "io/journal.h"
#include "io/read.h"
#include "io/temporary.h"
#include "weighbridge/open.h"
#include "weighbridge/place.h"

namespace weighbridge::convert {
namespace {

namespace fs = std::filesystem;

// True when the folder holds only temporaries and folders with nothing but those. An unreadable subfolder counts as
// non-empty. Throws io/open when the folder itself cannot be read.
bool holds_nothing(const fs::path& folder, int depth) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (io::is_temporary(at->path().filename().string())) continue;
    if (depth == 0 || at->is_symlink(error) || !at->is_directory(error) || !holds_nothing(at->path(), depth - 1))
      return false;
  }
  if (error && depth > 0) base::io_error_of(folder.string(), "open", "the folder cannot be listed", error.value());
  return !error;
}

std::string without_slashes(std::string path) {
  io::require_path(path);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool exists_as_folder(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_directory(status))
    base::misuse_of(path, "output-kind",
                    "cannot be written: it is not a folder, and this format is written as a folder");
  return fs::exists(status);
}

void require_empty(const std::string& path) {
  if (!holds_nothing(path, 1))
    base::misuse_of(path, "output-exists", "the folder is not empty", base::option_hint("overwrite"));
}

// Writes the whole of a file, in pieces, and reads it back.
void copy(const Source& from, io::AtomicFile& to) {
  io::read_pieces(from, 0, from.size(), [&](std::uint64_t at, std::span<const std::byte> bytes) {
    to.write_at(at, bytes);
    return true;
  });
  to.sync(from.size());
  const std::shared_ptr<const Source> written = to.reopen();
  if (written->size() != from.size()) to.refuse_read_back();
  to.read_back(*written, 0, from, 0, from.size());
  from.check_unchanged();
}

}  // namespace

void OutputFolder::check_path(const std::string& path, bool replace) {
  const std::string folder = without_slashes(path);
  if (!exists_as_folder(folder)) {
    io::open_folder(io::split_path(folder).folder);  // throws if the parent does not exist
  } else if (!replace) {
    require_empty(folder);
  }
}

OutputFolder::OutputFolder(const core::OutFolder& layout, const std::string& path, bool replace)
    : layout_(layout), path_(path), replace_(replace) {
  path_ = without_slashes(path);
  const bool exists = exists_as_folder(path_);
  io::Recovered left;
  if (exists) left = io::recover(path_);
  if (exists && !replace_) require_empty(path_);
  if (!exists) made_.make(path_);
  find_removed();
  remove_left_over();
  for (const std::string& each : paths()) {
    require_inside(each);
    left.require_free(path_, each.substr(file("").size()));
  }
}

// Through a symbolic link we would write outside the folder, to a file that others read: download caches contain such
// links.
void OutputFolder::require_inside(const std::string& path) const {
  std::error_code unknown;
  for (fs::path at = path; at != path_ && at.has_relative_path(); at = at.parent_path())
    if (fs::is_symlink(fs::symlink_status(at, unknown)))
      base::misuse_of(path, "output-kind", "cannot be written: '" + at.string() + "' is a symbolic link");
}

std::string OutputFolder::file(const std::string& name) const { return io::join_path(path_, name); }

// Collects the files that the layout removes, then the stale ones found in the folder.
void OutputFolder::find_removed() {
  if (!replace_) return;
  for (const core::OutFolder::Small& each : layout_.small)
    if (!each.written()) removed_.push_back(each.name);
  if (layout_.stale == nullptr) return;
  std::vector<std::string> stale;
  std::set<std::string_view> payloads;
  for (const core::OutFile& each : layout_.payloads) payloads.insert(each.name);
  std::error_code error;
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (layout_.stale(name) && !payloads.contains(name)) stale.push_back(std::move(name));
  }
  if (error) base::io_error_of(path_, "open", "the folder cannot be listed", error.value());
  std::ranges::sort(stale);
  removed_.insert(removed_.end(), stale.begin(), stale.end());
}

// Removes temporaries of killed runs, for the files to write and for outputs with another number of shards.
void OutputFolder::remove_left_over() const {
  std::set<std::string_view> names;
  for (const core::OutFile& each : layout_.payloads) names.insert(io::name_in_temporaries(each.name));
  for (const core::OutFolder::Small& each : layout_.small) names.insert(io::name_in_temporaries(each.name));
  io::remove_stale_of(io::open_folder(path_).get(), [&](std::string_view name) {
    return names.contains(name) || (layout_.stale != nullptr && layout_.stale(name));
  });
}

std::vector<std::string> OutputFolder::paths() const {
  std::vector<std::string> out;
  for (const core::OutFile& each : layout_.payloads) out.push_back(file(each.name));
  for (const core::OutFolder::Small& each : layout_.small)
    if (each.written()) out.push_back(file(each.name));
  for (const std::string& each : removed_) out.push_back(file(each));
  return out;
}

void OutputFolder::write() {
  for (const core::OutFile& each : layout_.payloads)
    payloads_.push_back(std::make_unique<io::AtomicFile>(
        file(each.name), io::AtomicFileOptions{replace_, each.layout.size_exact ? each.layout.size : 0, path_, true}));
  for (const core::OutFolder::Small& each : layout_.small) {
    if (!each.written()) continue;
    const std::size_t slash = each.name.find('/');
    if (slash != std::string::npos) made_.make(file(each.name.substr(0, slash)));
    auto out = std::make_unique<io::AtomicFile>(
        file(each.name), io::AtomicFileOptions{replace_, each.size(), path_, slash == std::string::npos});
    if (each.copy_of)
      copy(*each.copy_of, *out);
    else
      out->write_whole(std::as_bytes(std::span(*each.bytes)));
    small_.emplace_back(each.name, std::move(out));
  }
}

void OutputFolder::check(std::string_view format, const Context& context) const {
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files;
  for (std::size_t i = 0; i < payloads_.size(); ++i) files.emplace(layout_.payloads[i].name, payloads_[i]->reopen());
  for (const auto& [name, written] : small_) files.emplace(name, written->reopen());
  Context quiet;
  quiet.limits = context.limits;
  Report report;
  OpenOptions options;
  options.format = format;
  const auto model = open(folder_of(std::move(files), "output"), report, quiet, options);
  if (!model)
    base::io_error("read-back", "what was written does not read back: " + report.first_error()->message + " (" +
                                    report.first_error()->rule + "); nothing was published");
  if (layout_.check) layout_.check(*model);
}

io::AtomicFile& OutputFolder::last() const {
  for (std::size_t i = 0; i < payloads_.size(); ++i)
    if (layout_.payloads[i].name == layout_.last) return *payloads_[i];
  return *std::ranges::find(small_, layout_.last, &decltype(small_)::value_type::first)->second;
}

void OutputFolder::add_others(io::Publication& to) const {
  for (const std::string& each : removed_) to.remove(file(each));
  for (std::size_t i = 0; i < payloads_.size(); ++i)
    if (layout_.payloads[i].name != layout_.last) to.add(*payloads_[i]);
  for (const auto& [name, written] : small_)
    if (name != layout_.last) to.add(*written);
}

}  // namespace weighbridge::convert

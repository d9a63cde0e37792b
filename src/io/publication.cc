// SPDX-License-Identifier: Apache-2.0
// The order of publishing.
#include "io/publication.h"

#include <cerrno>
#include <utility>

#include "base/fail.h"

namespace weighbridge::io {
namespace {

// The path relative to the folder; both may be spelled in different ways.
std::string name_beneath(const std::string& folder, const std::string& path) {
  const std::string start = join_path(folder, "");
  if (path.starts_with(start) && (!start.empty() || path.front() != '/')) return path.substr(start.size());
  SplitPath split = split_path(path);
  if (!same_file(split.folder, folder))
    base::misuse_of(path, "output-kind",
                    "the file belongs beside the output, which a symbolic link puts into another folder ('" + folder +
                        "'): give the path there");
  return std::move(split.name);
}

}  // namespace

Publication::Publication(std::string folder, const std::function<bool()>& go_on)
    : folder_(std::move(folder)), folder_lock_(folder_, go_on) {}

Publication::Publication(AtomicFile& main, const std::function<bool()>& go_on)
    : Publication(split_path(main.path()).folder, go_on) {
  add(main);
}

void Publication::add(AtomicFile& file) {
  changes_.push_back(
      {name_beneath(folder_, file.path()), name_beneath(folder_, file.temporary_path()), file.replaces()});
  files_.push_back(&file);
}

void Publication::add(Journal::Change change) {
  changes_.push_back(std::move(change));
  files_.push_back(nullptr);
}

void Publication::remove(const std::string& path) { add({name_beneath(folder_, path)}); }

void Publication::publish(Way way) {
  if (changes_.size() == 1 && files_[0] != nullptr) return files_[0]->take_name();
  Journal journal(folder_, changes_);
  if (way == Way::together) journal.set_aside();
  for (std::size_t i = changes_.size(); i-- > 0;) {
    if (files_[i] != nullptr) {
      files_[i]->take_name();
      continue;
    }
    if (changes_[i].new_path.empty() || journal.move(i) == 0) continue;
    const int error = errno;
    const std::string path = join_path(folder_, changes_[i].name);
    if (error != EEXIST) base::io_error_of(path, "publish", "cannot be published", error);
    if (!changes_[i].replace) base::misuse_of(path, "output-exists", "the file exists", base::option_hint("overwrite"));
    base::misuse_of(path, "output-exists",
                    "this appeared while the run was publishing, and is left alone: run it again");
  }
  journal.commit();
  for (const Journal::Change& each : changes_)  // the old files that were exchanged
    if (way == Way::one_by_one && !each.new_path.empty())
      os::remove(os::kHere, join_path(folder_, each.new_path).c_str());
}

Staging::Staging(const std::string& folder, const std::string& name, bool made)
    : path_(folder), where_(open_folder(folder)) {
  remove_stale(where_.get(), name, os::Kind::folder);
  const NamesChange creating;
  temporary_ = create_temporary_folder(where_.get(), {folder, name}, made ? 0777 : 0700);
  on_abandon_.emplace([this] { remove_folder(where_.get(), temporary_.name); });
}

Staging::~Staging() {
  const NamesChange removing;
  on_abandon_.reset();
  remove_folder(where_.get(), temporary_.name);
}

int Staging::rename_new(const std::string& name) noexcept {
  const NamesChange publishing;
  return io::rename_new(where_.get(), temporary_.name.c_str(), where_.get(), name.c_str());
}

MadeFolders::~MadeFolders() {
  const NamesChange removing;
  on_abandon_.clear();
  if (!kept_)
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) os::remove_folder(os::kHere, folder->c_str());
}

bool MadeFolders::make(const std::string& path) {
  const NamesChange creating;
  if (os::make_folder(os::kHere, path.c_str(), 0777) == 0) {
    made_.push_back(path);
    on_abandon_.emplace_back([path] { os::remove_folder(os::kHere, path.c_str()); });
    return true;
  }
  if (errno != EEXIST) base::io_error_of(path, "create", "the folder cannot be created", errno);
  return false;
}

void MadeFolders::sync() const {
  for (const std::string& folder : made_) sync_folder(split_path(folder).folder);
}

}  // namespace weighbridge::io

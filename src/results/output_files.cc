// SPDX-License-Identifier: Apache-2.0
// OutputFiles: writes into a temporary folder, which becomes the output or from which the files move into place. Leaves
// names, locks and stale temporaries to io.
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/publication.h"
#include "weighbridge/output.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_kind(const std::string& path, std::string sentence) {
  base::misuse_of(path, "output-kind", std::move(sentence));
}
[[noreturn]] void refuse_existing(const std::string& path, std::string_view since = {}) {
  base::misuse_of(path, "output-exists", "the file exists" + std::string(since), base::option_hint("overwrite"));
}

std::string without_tail(std::string folder) {
  while (folder.size() > 1 && (folder.ends_with('/') || folder.ends_with("/."))) folder.pop_back();
  return folder;
}

}  // namespace

struct OutputFiles::Rep {
  Rep(std::string asked, bool replaces, std::span<const std::shared_ptr<const Source>> read)
      : folder(without_tail(std::move(asked))), replace(replaces), inputs(read.begin(), read.end()) {
    find_missing();
    const io::SplitPath split = io::split_path(folder.string());
    target = exists ? io::Target{folder.string(), "folder"} : io::Target{split.folder, split.name};
    left = io::recover(target.folder);
    for (const fs::path& each : missing) made.make(each.string());
    // A folder that may replace private files must itself be private while they are written.
    staging.emplace(target.folder, target.name, !exists);
  }

  void find_missing();
  void require_free(const std::string& name) const;
  void publish_folder();
  void publish_files();

  fs::path folder;
  bool replace, exists = false;
  std::vector<std::shared_ptr<const Source>> inputs;
  std::vector<fs::path> missing{};  // folders above it, outermost first
  io::MadeFolders made{};
  io::Target target{};   // the target of the temporary folder
  io::Recovered left{};  // of killed runs in its folder
  std::optional<io::Staging> staging{};
  std::vector<std::string> names{};
  std::set<std::string, std::less<>> taken{};
};

void OutputFiles::Rep::find_missing() {
  io::require_path(folder.string());
  std::error_code error;
  fs::path at = folder;
  for (; !at.empty(); at = at.parent_path()) {
    const fs::file_status there = fs::symlink_status(at, error);
    if (there.type() == fs::file_type::none)
      base::io_error_of(folder.string(), "create", "the folder cannot be written into", error.value());
    if (fs::exists(there)) break;
    if (at.filename() == "..")
      refuse_kind(folder.string(), "cannot be written into: it leads through a folder that does not exist");
    if (at != folder) missing.insert(missing.begin(), at);
  }
  exists = at == folder;
  if (at.empty() || fs::is_directory(at, error)) return;
  const bool leads_nowhere = !fs::exists(at, error) && !error;
  refuse_kind(folder.string(), std::string("cannot be written into: ") + (exists ? "it" : "'" + at.string() + "'") +
                                   " is " + (leads_nowhere ? "a broken symbolic link" : "not a folder"));
}

void OutputFiles::Rep::require_free(const std::string& name) const {
  left.require_free(target.folder, exists ? name : target.name);
  if (!exists) return;
  const fs::path at = folder / name;
  std::error_code error;
  const fs::file_status there = fs::symlink_status(at, error);
  if (!fs::exists(there)) return;
  // A link may lead to another disk, where a rename from here is impossible.
  if (fs::is_symlink(there)) refuse_kind(at.string(), "cannot be written: it is a symbolic link");
  if (!fs::is_regular_file(there)) refuse_kind(at.string(), "cannot be written: it is not a regular file");
  if (io::find_file(at.string(), inputs))
    base::misuse_of(at.string(), "output-is-input", "the output is the input itself");
  if (!replace) refuse_existing(at.string());
}

void OutputFiles::Rep::publish_folder() {
  for (const auto& input : inputs) input->check_unchanged();
  if (staging->rename_new(target.name) == 0) return;
  if (errno == EEXIST || errno == ENOTEMPTY)
    refuse_existing(folder.string(), ": it appeared while this run was writing");
  base::io_error_of(folder.string(), "publish", "the folder cannot be created", errno);
}

void OutputFiles::Rep::publish_files() {
  io::Publication publication(target.folder);
  for (const auto& input : inputs) input->check_unchanged();
  for (const std::string& name : names) publication.add({name, staging->name() + "/" + name, replace});
  publication.publish(io::Publication::Way::one_by_one);
}

OutputFiles::OutputFiles(const std::string& folder, bool replace, std::span<const std::shared_ptr<const Source>> inputs)
    : rep_(std::make_unique<Rep>(folder, replace, inputs)) {}
OutputFiles::~OutputFiles() = default;
OutputFiles::OutputFiles(OutputFiles&&) noexcept = default;
OutputFiles& OutputFiles::operator=(OutputFiles&&) noexcept = default;

std::string OutputFiles::add(const std::string& name) {
  if (!rep_->staging) throw std::logic_error("the files are published");
  io::require_path(name);
  if (name == "." || name == ".." || name.find('/') != std::string::npos)
    base::misuse("path", "'" + name + "' does not name a file in a folder");
  rep_->require_free(name);
  if (!rep_->taken.insert(name).second) base::misuse("path", "two files of the folder have the name '" + name + "'");
  rep_->names.push_back(name);
  return io::join_path(rep_->staging->path(), name);
}

std::string OutputFiles::path(const std::string& name) const { return (rep_->folder / name).string(); }

void OutputFiles::publish() {
  if (!rep_->staging) throw std::logic_error("the files are published");
  rep_->exists ? rep_->publish_files() : rep_->publish_folder();
  // All files are in place, even if syncing fails below.
  rep_->made.keep();
  rep_->staging.reset();
  io::sync_folder(rep_->target.folder);
  rep_->made.sync();
}

}  // namespace weighbridge

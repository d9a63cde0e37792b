// SPDX-License-Identifier: Apache-2.0
// OutputFiles: writes into a temporary folder and moves the files into place. Leaves names, locks and stale temporaries
// to io.
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/abandon.h"
#include "io/journal.h"
#include "io/temporary.h"
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
    left = io::recover(target.folder);  // waits for other processes, so it comes before the process-wide lock
    const io::NamesChange creating;
    try {
      std::error_code error;
      for (const fs::path& each : made)
        if (!fs::create_directory(each, error) && error)
          base::io_error_of(folder.string(), "create", "the folder cannot be created", error.value());
      make_temporary();
      on_abandon.emplace([this] { remove_all(); });
    } catch (...) {
      remove_made();
      throw;
    }
  }
  ~Rep() {
    const io::NamesChange removing;
    on_abandon.reset();
    remove_all();
  }
  void remove_all() noexcept {
    if (temporary.fd) io::remove_folder(where.get(), temporary.name);
    remove_made();
  }
  Rep(const Rep&) = delete;
  Rep& operator=(const Rep&) = delete;

  void find_missing();
  void make_temporary();
  void remove_made() noexcept;
  void require_free(const std::string& name) const;
  void publish_folder();
  void publish_files();

  fs::path folder;
  bool replace, exists = false;
  std::vector<std::shared_ptr<const Source>> inputs;
  std::vector<fs::path> made{};  // folders created above it, outermost first
  io::Target target{};           // the target of the temporary
  io::Recovered left{};          // of killed runs in its folder
  io::Fd where{};                // the folder of the temporary
  io::Temporary temporary{};
  std::vector<std::string> names{};
  std::set<std::string, std::less<>> taken{};
  std::optional<io::OnAbandon> on_abandon{};
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
    if (at != folder) made.insert(made.begin(), at);
  }
  exists = at == folder;
  if (at.empty() || fs::is_directory(at, error)) return;
  const bool leads_nowhere = !fs::exists(at, error) && !error;
  refuse_kind(folder.string(), std::string("cannot be written into: ") + (exists ? "it" : "'" + at.string() + "'") +
                                   " is " + (leads_nowhere ? "a broken symbolic link" : "not a folder"));
}

void OutputFiles::Rep::make_temporary() {
  where = io::open_folder(target.folder);
  io::remove_stale(where.get(), target.name, io::os::Kind::folder);
  // A folder that may replace private files must itself be private while they are written.
  temporary = io::create_temporary_folder(where.get(), target, exists ? 0700 : 0777);
}

void OutputFiles::Rep::remove_made() noexcept {
  std::error_code ignored;
  for (auto each = made.rbegin(); each != made.rend(); ++each) fs::remove(*each, ignored);  // only if empty
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
  const io::NamesChange publishing;
  if (io::rename_new(where.get(), temporary.name.c_str(), where.get(), target.name.c_str()) == 0) return;
  if (errno == EEXIST || errno == ENOTEMPTY)
    refuse_existing(folder.string(), ": it appeared while this run was writing");
  base::io_error_of(folder.string(), "publish", "the folder cannot be created", errno);
}

void OutputFiles::Rep::publish_files() {
  std::vector<io::Journal::Change> changes;
  for (const std::string& name : names) changes.push_back({name, temporary.name + "/" + name, replace});
  io::Journal journal(target.folder, std::move(changes));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (journal.move(i) == 0) continue;
    const int error = errno;
    const std::string path = (folder / names[i]).string();
    if (error == EEXIST)
      refuse_existing(path, replace ? ", which appeared while this run was writing and is not a regular file" : "");
    base::io_error_of(path, "publish", "cannot be published", error);
  }
  journal.commit();
  for (const std::string& name : names)
    io::os::remove(temporary.fd.get(), name.c_str());  // old files that were exchanged
  io::remove_folder(where.get(), temporary.name);
}

OutputFiles::OutputFiles(const std::string& folder, bool replace, std::span<const std::shared_ptr<const Source>> inputs)
    : rep_(std::make_unique<Rep>(folder, replace, inputs)) {}
OutputFiles::~OutputFiles() = default;
OutputFiles::OutputFiles(OutputFiles&&) noexcept = default;
OutputFiles& OutputFiles::operator=(OutputFiles&&) noexcept = default;

std::string OutputFiles::add(const std::string& name) {
  io::require_path(name);
  if (name == "." || name == ".." || name.find('/') != std::string::npos)
    base::misuse("path", "'" + name + "' does not name a file in a folder");
  rep_->require_free(name);
  if (!rep_->taken.insert(name).second) base::misuse("path", "two files of the folder have the name '" + name + "'");
  rep_->names.push_back(name);
  return io::join_path(io::join_path(rep_->target.folder, rep_->temporary.name), name);
}

std::string OutputFiles::path(const std::string& name) const { return (rep_->folder / name).string(); }

void OutputFiles::publish() {
  for (const auto& input : rep_->inputs) input->check_unchanged();
  rep_->exists ? rep_->publish_files() : rep_->publish_folder();
  // All files are in place, even if syncing fails below.
  std::vector<fs::path> made;
  {
    const io::NamesChange publishing;
    rep_->temporary = {};
    made = std::exchange(rep_->made, {});
  }
  if (io::sync_folder(rep_->where.get()) != 0)
    base::io_error_of(rep_->target.folder, "publish", "the folder cannot be written to the disk", errno);
  for (const fs::path& each : made) io::sync_folder(io::split_path(each.string()).folder);
}

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// OutputFiles: writes into a temporary folder and moves the files into place. Leaves names, locks and stale temporaries
// to io.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
#include "io/folder_lock.h"
#include "io/temporary.h"
#include "weighbridge/output.h"

namespace weighbridge {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_kind(const std::string& path, std::string sentence) {
  base::misuse_of(path, "output-kind", std::move(sentence));
}
[[noreturn]] void refuse_existing(const std::string& path, std::string_view since = {}) {
  base::misuse_of(path, "output-exists", "the file exists" + std::string(since), base::option_hint("replace"));
}

std::string without_tail(std::string folder) {
  while (folder.size() > 1 && (folder.ends_with('/') || folder.ends_with("/."))) folder.pop_back();
  return folder;
}

// The mode of the file with this name. Returns 0, or -1 with errno; EEXIST if it is not a regular file.
int mode_of_file(int folder, const char* name, mode_t& mode) noexcept {
  struct stat there {};
  if (::fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  mode = there.st_mode & 0777U;
  if (S_ISREG(there.st_mode)) return 0;
  errno = EEXIST;
  return -1;
}

// Exchanges a file with the one of the same name at `to`, which hands on its permissions. Returns as renameat does. If
// the filesystem cannot exchange names, the old file is lost and `kept` is false.
int replace_file(int from, int to, const char* name, bool& kept) noexcept {
  mode_t mode = 0;
  if (mode_of_file(to, name, mode) != 0 || ::fchmodat(from, name, mode, 0) != 0) return -1;
  if (io::exchange(from, name, to, name) != 0) {
    kept = false;
    return io::not_offered(errno) ? io::rename_over(from, name, to, name) : -1;
  }
  if (mode_of_file(from, name, mode) == 0) return 0;
  // Something that is no regular file took the name in the meantime.
  const int error = errno;
  io::exchange(from, name, to, name);
  errno = error;
  return -1;
}

// A file that was moved to its place.
struct Moved {
  const char* name;
  struct stat file {};
  bool replaced = false;  // it replaced another file; `kept`: that one is now in the temporary folder
  bool kept = true;
};

}  // namespace

struct OutputFiles::Rep {
  Rep(std::string asked, bool replaces, std::span<const std::shared_ptr<const Source>> read)
      : folder(without_tail(std::move(asked))), replace(replaces), inputs(read.begin(), read.end()) {
    find_missing();
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
  int move(Moved& file) const noexcept;
  void take_back(const std::vector<Moved>& moved) const noexcept;

  fs::path folder;
  bool replace, exists = false;
  std::vector<std::shared_ptr<const Source>> inputs;
  std::vector<fs::path> made{};  // folders created above it, outermost first
  io::Target target{};           // the target of the temporary
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
  const io::SplitPath split = io::split_path(folder.string());
  target = exists ? io::Target{folder.string(), "folder"} : io::Target{split.folder, split.name};
  where = io::open_folder(target.folder);
  io::remove_stale(where.get(), target.name, S_IFDIR);
  // A folder that may replace private files must itself be private while they are written.
  temporary = io::create_temporary_folder(where.get(), target, exists ? 0700 : 0777);
}

void OutputFiles::Rep::remove_made() noexcept {
  std::error_code ignored;
  for (auto each = made.rbegin(); each != made.rend(); ++each) fs::remove(*each, ignored);  // only if empty
}

void OutputFiles::Rep::require_free(const std::string& name) const {
  if (!exists) return;
  const fs::path at = folder / name;
  std::error_code error;
  const fs::file_status there = fs::symlink_status(at, error);
  if (!fs::exists(there)) return;
  // A link may lead to another disk, where a rename from here is impossible.
  if (fs::is_symlink(there)) refuse_kind(at.string(), "cannot be written: it is a symbolic link");
  if (!fs::is_regular_file(there)) refuse_kind(at.string(), "cannot be written: it is not a regular file");
  if (io::is_one_of(at.string(), inputs))
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

// Returns 0, or -1 with errno; EEXIST if the file with this name may not be replaced.
int OutputFiles::Rep::move(Moved& file) const noexcept {
  const int from = temporary.fd.get(), to = where.get();
  if (::fstatat(from, file.name, &file.file, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  if (io::rename_new(from, file.name, to, file.name) == 0) return 0;
  if (errno != EEXIST || !replace) return -1;
  file.replaced = true;
  return replace_file(from, to, file.name, file.kept);
}

void OutputFiles::Rep::publish_files() {
  const io::FolderLock turn(target.folder);  // without turns, two runs would mix their files
  const io::NamesChange publishing;
  std::vector<Moved> moved;
  moved.reserve(names.size());
  for (const std::string& name : names) {
    Moved file{name.c_str()};
    if (move(file) == 0) {
      moved.push_back(file);
      continue;
    }
    const int error = errno;
    take_back(moved);
    const std::string path = (folder / name).string();
    if (error == EEXIST)
      refuse_existing(path, replace ? ", which appeared while this run was writing and is not a regular file" : "");
    base::io_error_of(path, "publish", "cannot be published", error);
  }
  for (const Moved& each : moved)
    if (each.replaced) ::unlinkat(temporary.fd.get(), each.name, 0);
  io::remove_folder(where.get(), temporary.name);
}

// Removes only the files of this run: another run may have replaced some of them.
void OutputFiles::Rep::take_back(const std::vector<Moved>& moved) const noexcept {
  for (const Moved& each : moved) {
    struct stat there {};
    if (::fstatat(where.get(), each.name, &there, AT_SYMLINK_NOFOLLOW) != 0 || there.st_dev != each.file.st_dev ||
        there.st_ino != each.file.st_ino)
      continue;
    if (!each.replaced)
      ::unlinkat(where.get(), each.name, 0);
    else if (each.kept)
      io::rename_over(temporary.fd.get(), each.name, where.get(), each.name);
  }
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

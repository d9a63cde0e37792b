// SPDX-License-Identifier: Apache-2.0
// Temporary folders. As with the library's temporary files, the name says what they are, and a lock that a run is alive
// which needs them: the next run removes what a killed one left.
#include "staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <system_error>

#include "session.h"

namespace weighbridge::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const std::error_code& error) {
  raise(Kind::io, "io/create", what + ": " + error.message());
}
[[noreturn]] void fail(const std::string& what, int error) { fail(what, {error, std::generic_category()}); }

[[noreturn]] void refuse_kind(const std::string& sentence) { raise(Kind::misuse, "misuse/output-kind", sentence); }

constexpr std::string_view kEnding = ".tmp";
constexpr std::size_t kDigits = 16;
constexpr int kAttempts = 100;  // at a temporary of one's own

std::string prefix_of(const std::string& name) {
  constexpr std::size_t kLongest = 200;  // of a name that the rest is added to
  return "." + (name.size() > kLongest ? std::string("folder") : name) + ".weighbridge-";
}

std::string random_digits() {
  std::random_device random;
  std::string out;
  for (std::size_t i = 0; i < kDigits; ++i) out += "0123456789abcdef"[random() & 15U];
  return out;
}

int open_folder(const fs::path& folder) noexcept {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int lock_now(int fd) noexcept {
  int result = 0;
  do {
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result;
}

bool is_same(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether the path is still that of the folder that `fd` holds.
bool still_named(const fs::path& path, int fd) noexcept {
  struct stat held {
  }, there{};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &there) == 0 && is_same(held, there);
}

void remove_stale(const fs::path& where, const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator at(where, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() != prefix.size() + kDigits + kEnding.size() || !name.starts_with(prefix) ||
        !name.ends_with(kEnding))
      continue;
    const int fd = open_folder(at->path());
    if (fd < 0) continue;
    std::error_code ignored;
    if (lock_now(fd) == 0 && still_named(at->path(), fd)) fs::remove_all(at->path(), ignored);
    ::close(fd);
  }
}

void sync(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the names are given, and what cannot be opened cannot be synced
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // A filesystem that cannot sync a folder says EINVAL; then there is nothing more that could be done.
  if (error != 0 && error != EINVAL)
    raise(Kind::io, "io/publish",
          "cannot write the folder '" + folder.string() + "' to the disk: " + std::strerror(error));
}

// True where the filesystem does not know a call or flag, so that another way is worth trying; link() says EPERM of a
// folder.
bool not_offered(int error) noexcept {
  return error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == EINVAL || error == EPERM;
}

// Renames a file or folder only where nothing has the new name, in one step where the filesystem can. 0, or why not.
int rename_new(const fs::path& from, const fs::path& to) noexcept {
#ifdef __linux__
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (!not_offered(errno)) return errno;
#endif
  if (::link(from.c_str(), to.c_str()) == 0) {
    ::unlink(from.c_str());
    return 0;
  }
  if (!not_offered(errno)) return errno;
  struct stat there {};
  if (::lstat(to.c_str(), &there) == 0) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// What it replaces hands on its permissions. 0, or why not.
int rename_over(const fs::path& from, const fs::path& to) noexcept {
  struct stat there {};
  if (::lstat(to.c_str(), &there) == 0 && S_ISREG(there.st_mode) && ::chmod(from.c_str(), there.st_mode & 0777U) != 0)
    return errno;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Staging::Staging(std::string folder, bool replace) : replace_(replace) {
  while (folder.size() > 1 && (folder.ends_with('/') || folder.ends_with("/."))) folder.pop_back();
  folder_ = folder;
  find_missing();
  std::error_code error;
  try {
    for (const fs::path& each : made_)
      if (!fs::create_directory(each, error) && error) fail(cannot_make(), error);
    exists_ ? make_temporary(folder_, "folder") : make_temporary(folder_.parent_path(), folder_.filename().string());
  } catch (...) {
    remove_made();
    throw;
  }
}

std::string Staging::cannot_make() const {
  return exists_ ? "cannot write into the folder '" + folder_.string() + "'"
                 : "folder '" + folder_.string() + "' cannot be made";
}

void Staging::find_missing() {
  if (folder_.empty()) refuse_kind("the folder to write into has an empty name");
  std::error_code error;
  fs::path at = folder_;
  for (; !at.empty(); at = at.parent_path()) {
    const fs::file_status there = fs::symlink_status(at, error);
    if (there.type() == fs::file_type::none) fail(cannot_make(), error);
    if (fs::exists(there)) break;
    if (at.filename() == "..")
      refuse_kind("cannot write into '" + folder_.string() + "': it leads through a folder that does not exist");
    if (at != folder_) made_.insert(made_.begin(), at);
  }
  exists_ = at == folder_;
  if (at.empty() || fs::is_directory(at, error)) return;
  const bool leads_nowhere = !fs::exists(at, error) && !error;
  refuse_kind("cannot write into '" + folder_.string() + "': " + (exists_ ? "it" : "'" + at.string() + "'") + " is " +
              (leads_nowhere ? "a symbolic link to nothing" : "no folder"));
}

void Staging::make_temporary(const fs::path& where, const std::string& of) {
  const std::string prefix = prefix_of(of);
  remove_stale(where.empty() ? fs::path(".") : where, prefix);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const fs::path made = where / (prefix + random_digits() + std::string(kEnding));
    // What is to replace private files is private while it is being made.
    if (::mkdir(made.c_str(), exists_ ? 0700 : 0777) != 0) {
      if (errno == EEXIST) continue;
      fail(cannot_make(), errno);
    }
    const int fd = open_folder(made);
    if (fd < 0) {
      const int error = errno;
      if (error == ENOENT) continue;  // as below
      ::rmdir(made.c_str());          // a umask may keep its own user out
      fail(cannot_make(), error);
    }
    // Until it is locked, another run may take it for stale: then it is locked by that run now, or gone already. A
    // filesystem without locks has no stale ones found either, as nobody gets the lock.
    if ((lock_now(fd) != 0 && errno == EWOULDBLOCK) || !still_named(made, fd)) {
      ::close(fd);
      continue;
    }
    lock_ = fd;
    temporary_ = made;
    return;
  }
  fail(cannot_make(), EEXIST);
}

void Staging::remove_made() noexcept {
  std::error_code ignored;
  for (auto each = made_.rbegin(); each != made_.rend(); ++each) fs::remove(*each, ignored);  // where it is empty
}

Staging::~Staging() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
  remove_made();
}

void Staging::require_free(const std::string& name, std::span<const std::shared_ptr<const Source>> inputs) const {
  if (!exists_) return;
  const fs::path at = folder_ / name;
  std::error_code error;
  const fs::file_status there = fs::symlink_status(at, error);
  if (!fs::exists(there)) return;
  // Its file may be on another disk, where what is written here cannot be moved to.
  if (fs::is_symlink(there)) refuse_kind("cannot write '" + at.string() + "': it is a symbolic link");
  if (!fs::is_regular_file(there)) refuse_kind("cannot write '" + at.string() + "': it is no regular file");
  for (const auto& input : inputs)
    if (fs::equivalent(at, fs::path(input->name()), error))
      raise(Kind::misuse, "misuse/output-is-input", "the output '" + at.string() + "' is the input itself");
  if (!replace_) raise(Kind::misuse, "misuse/output-exists", "'" + at.string() + "' exists");
}

void Staging::publish(const std::vector<std::string>& names) {
  exists_ ? publish_files(names) : publish_folder();
  temporary_.clear();
  made_.clear();
}

void Staging::publish_folder() {
  const int error = rename_new(temporary_, folder_);
  if (error == EEXIST || error == ENOTEMPTY)
    raise(Kind::misuse, "misuse/output-exists", "'" + folder_.string() + "' exists: it was made in the meantime");
  if (error != 0) fail(cannot_make(), error);
  sync(folder_.parent_path().empty() ? fs::path(".") : folder_.parent_path());
}

void Staging::publish_files(const std::vector<std::string>& names) {
  std::vector<struct stat> moved;  // those that are new
  moved.reserve(names.size());
  for (const std::string& name : names) {
    const fs::path from = temporary_ / name, to = folder_ / name;
    struct stat written {};
    int error = ::lstat(from.c_str(), &written) == 0 ? 0 : errno;
    if (error == 0) error = replace_ ? rename_over(from, to) : rename_new(from, to);
    if (error == 0) {
      if (!replace_) moved.push_back(written);
      continue;
    }
    take_back(names, moved);
    if (error == EEXIST) raise(Kind::misuse, "misuse/output-exists", "'" + to.string() + "' exists");
    raise(Kind::io, "io/publish", "cannot publish '" + to.string() + "': " + std::strerror(error));
  }
  std::error_code ignored;
  fs::remove(temporary_, ignored);
  sync(folder_);
}

// Only its own: another run may have replaced one of them.
void Staging::take_back(const std::vector<std::string>& names, const std::vector<struct stat>& moved) const {
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const fs::path at = folder_ / names[i];
    struct stat there {};
    if (::lstat(at.c_str(), &there) == 0 && is_same(there, moved[i])) ::unlink(at.c_str());
  }
}

}  // namespace weighbridge::cli

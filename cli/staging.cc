// SPDX-License-Identifier: Apache-2.0
// Temporary folders. As with the library's temporary files, the name says what they are, and a lock that a run is alive
// which needs them: the next run removes what a killed one left.
#include "staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

constexpr std::string_view kEnding = ".tmp";
constexpr std::size_t kDigits = 16;

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

// The folder, open and locked; -1: another run has the lock, or there are none to be had.
int locked(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

void remove_stale(const fs::path& where, const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator at(where, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() != prefix.size() + kDigits + kEnding.size() || !name.starts_with(prefix) ||
        !name.ends_with(kEnding))
      continue;
    if (const int lock = locked(at->path()); lock >= 0) {
      std::error_code ignored;
      fs::remove_all(at->path(), ignored);
      ::close(lock);
    }
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

}  // namespace

Staging::Staging(std::string folder, bool replace) : replace_(replace) {
  const std::string said = "folder '" + folder + "' cannot be made";
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  folder_ = folder;
  std::error_code error;
  exists_ = fs::is_directory(folder_, error);
  if (!exists_ && fs::exists(fs::symlink_status(folder_, error)))
    fail(said, std::make_error_code(std::errc::file_exists));
  fs::path above = folder_.parent_path();
  for (fs::path at = above; !exists_ && !at.empty() && !fs::exists(at, error); at = at.parent_path())
    made_.insert(made_.begin(), at);
  for (const fs::path& each : made_)
    if (!fs::create_directory(each, error) && error) fail(said, error);
  try {
    exists_ ? make_temporary(folder_, "folder") : make_temporary(above, folder_.filename().string());
  } catch (...) {
    for (auto each = made_.rbegin(); each != made_.rend(); ++each) fs::remove(*each, error);
    throw;
  }
}

void Staging::make_temporary(const fs::path& where, const std::string& of) {
  const std::string prefix = prefix_of(of);
  remove_stale(where.empty() ? fs::path(".") : where, prefix);
  temporary_ = where / (prefix + random_digits() + std::string(kEnding));
  // What is to replace private files is private while it is being made.
  if (::mkdir(temporary_.c_str(), exists_ ? 0700 : 0777) != 0)
    fail("folder '" + folder_.string() + "' cannot be made", {errno, std::generic_category()});
  lock_ = locked(temporary_);
}

Staging::~Staging() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
  for (auto each = made_.rbegin(); each != made_.rend(); ++each) fs::remove(*each, ignored);  // where it is empty
}

void Staging::require_free(const std::string& name, std::span<const std::shared_ptr<const Source>> inputs) const {
  if (!exists_) return;
  const fs::path at = folder_ / name;
  std::error_code error;
  const fs::file_status there = fs::status(at, error);
  if (!fs::exists(fs::symlink_status(at, error))) return;
  if (!fs::is_regular_file(there))
    raise(Kind::misuse, "misuse/output-kind", "cannot write '" + at.string() + "': it is no regular file");
  for (const auto& input : inputs)
    if (fs::equivalent(at, fs::path(input->name()), error))
      raise(Kind::misuse, "misuse/output-is-input", "the output '" + at.string() + "' is the input itself");
  if (!replace_) raise(Kind::misuse, "misuse/output-exists", "'" + at.string() + "' exists");
}

void Staging::publish(const std::vector<std::string>& names) {
  std::error_code error;
  if (!exists_) {
    fs::rename(temporary_, folder_, error);
    if (error) fail("folder '" + folder_.string() + "' cannot be made", error);
    sync(folder_.parent_path().empty() ? fs::path(".") : folder_.parent_path());
  } else {
    for (const std::string& name : names) {
      const fs::path from = temporary_ / name, to = folder_ / name;
      if (fs::exists(to, error)) fs::permissions(from, fs::status(to, error).permissions(), error);
      fs::rename(from, to, error);
      if (error) raise(Kind::io, "io/publish", "cannot publish '" + to.string() + "': " + error.message());
    }
    fs::remove(temporary_, error);
    sync(folder_);
  }
  temporary_.clear();
  made_.clear();
}

}  // namespace weighbridge::cli

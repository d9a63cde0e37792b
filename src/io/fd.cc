// SPDX-License-Identifier: Apache-2.0
// Retry loops around pread and pwrite, and the few path helpers that io shares.
#include "io/fd.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/fail.h"
#include "io/calls.h"

namespace weighbridge::io {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

std::size_t pread_full(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      base::io_error_of(path, "read", "cannot be read", errno);
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void pwrite_full(int fd, std::uint64_t offset, std::span<const std::byte> data, const std::string& path) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t put = ::pwrite(fd, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
    if (put < 0) {
      if (errno == EINTR) continue;
      base::io_error_of(path, "write", "cannot be written", errno);
    }
    // POSIX allows 0 for a nonzero count; treating it as progress would loop forever.
    if (put == 0) base::io_error_of(path, "write", "cannot be written", ENOSPC);
    done += static_cast<std::size_t>(put);
  }
}

const char* file_kind(mode_t mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG: return "a regular file";
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a FIFO";
    case S_IFSOCK: return "a socket";
    case S_IFCHR: return "a character device";
    case S_IFBLK: return "a block device";
    default: return "a special file";
  }
}

void require_path(const std::string& path) {
  if (path.empty()) base::misuse("path", "the path is empty");
  if (path.find('\0') != std::string::npos) base::misuse("path", "the path contains a NUL byte");
}

SplitPath split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

std::string join_path(const std::string& folder, const std::string& name) {
  if (folder == ".") return name;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

int rename_over(int from_folder, const char* from, int to_folder, const char* to) noexcept {
#ifdef __EMSCRIPTEN__
  // Emscripten keeps a file that another was renamed over, and shows it again once that one is removed, so remove it
  // first. Its disk is in memory and it has one thread, so nobody sees the moment in between.
  ::unlinkat(to_folder, to, 0);
#endif
  return ::renameat(from_folder, from, to_folder, to);
}

// Emscripten's filesystem has no hard links and reports EMLINK; link() reports EPERM for a folder.
bool not_offered(int error) noexcept {
  return error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == EINVAL || error == EPERM ||
         error == EMLINK;
}

int rename_new(int from_folder, const char* from, int to_folder, const char* to) noexcept {
#ifdef __linux__
  if (rename_with(from_folder, from, to_folder, to, RENAME_NOREPLACE) == 0) return 0;
  if (!not_offered(errno)) return -1;
#endif
  if (::linkat(from_folder, from, to_folder, to, 0) == 0) {
    ::unlinkat(from_folder, from, 0);
    return 0;
  }
  if (!not_offered(errno)) return -1;
  // Neither call exists (FAT, Emscripten): check, then rename. The race between the two cannot be avoided there.
  struct stat there {};
  if (::fstatat(to_folder, to, &there, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return -1;
  }
  return ::renameat(from_folder, from, to_folder, to);
}

int exchange(int folder, const char* name, int other_folder, const char* other_name) noexcept {
#ifdef __linux__
  return rename_with(folder, name, other_folder, other_name, RENAME_EXCHANGE);
#else
  static_cast<void>(folder), static_cast<void>(name), static_cast<void>(other_folder), static_cast<void>(other_name);
  errno = ENOSYS;
  return -1;
#endif
}

int sync_folder(int folder) noexcept { return ::fsync(folder) == 0 || errno == EINVAL ? 0 : -1; }

namespace {
bool is_at(const struct stat& file, const std::string& path) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && there.st_dev == file.st_dev && there.st_ino == file.st_ino;
}
}  // namespace

bool same_file(const std::string& a, const std::string& b) {
  struct stat file {};
  return ::stat(a.c_str(), &file) == 0 && is_at(file, b);
}

const Source* find_file(const std::string& path, std::span<const std::shared_ptr<const Source>> sources,
                        const Source* besides) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return nullptr;
  std::string_view last;
  for (const auto& each : sources) {
    if (each.get() == besides || each->path().empty() || each->path() == last) continue;
    last = each->path();
    if (is_at(file, std::string(last))) return each.get();
  }
  return nullptr;
}

}  // namespace weighbridge::io

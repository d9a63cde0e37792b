// SPDX-License-Identifier: Apache-2.0
// The calls that POSIX.1-2008 has, for every system that has them.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/os.h"

namespace weighbridge::io {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

namespace os {
namespace {

static_assert(kHere == AT_FDCWD && sizeof(off_t) == 8);

// Repeats a call that a signal interrupted.
template <typename Call> auto repeated(Call&& call) noexcept {
  auto out = call();
  while (out < 0 && errno == EINTR) out = call();
  return out;
}

Fd opened(Handle folder, const char* name, int flags, mode_t mode = 0) noexcept {
  return Fd(repeated([&] { return ::openat(folder, name, flags | O_CLOEXEC, mode); }));
}
constexpr int unless_followed(Last last) noexcept { return last == Last::itself ? O_NOFOLLOW : 0; }
constexpr int kNoWait = O_NONBLOCK | O_NOCTTY;  // for a FIFO or a terminal; a regular file ignores both

Kind kind_of(mode_t mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG: return Kind::file;
    case S_IFDIR: return Kind::folder;
    case S_IFLNK: return Kind::link;
    case S_IFIFO: return Kind::fifo;
    case S_IFSOCK: return Kind::socket;
    case S_IFCHR: return Kind::character_device;
    case S_IFBLK: return Kind::block_device;
    default: return Kind::other;
  }
}
std::optional<Status> as_status(int result, const struct stat& s) noexcept {
  if (result != 0) return std::nullopt;
  return Status{.kind = kind_of(s.st_mode),
                .mode = s.st_mode & 07777U,
                .device = static_cast<std::uint64_t>(s.st_dev),
                .inode = static_cast<std::uint64_t>(s.st_ino),
                .size = static_cast<std::uint64_t>(s.st_size),
                .links = static_cast<std::uint64_t>(s.st_nlink),
                .owner = s.st_uid,
                .modified = {s.st_mtim.tv_sec, s.st_mtim.tv_nsec},
                .changed = {s.st_ctim.tv_sec, s.st_ctim.tv_nsec}};
}

}  // namespace

Fd open_to_read(Handle folder, const char* name, Last last) noexcept {
  return opened(folder, name, O_RDONLY | kNoWait | unless_followed(last));
}
Fd open_to_change(Handle folder, const char* name) noexcept {
  return opened(folder, name, O_RDWR | kNoWait | O_NOFOLLOW);
}
Fd create(Handle folder, const char* name, unsigned mode) noexcept {
  return opened(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, static_cast<mode_t>(mode));
}
Fd open_folder(Handle folder, const char* name, Last last) noexcept {
  return opened(folder, name, O_RDONLY | O_DIRECTORY | unless_followed(last));
}
Fd enter_folder(Handle folder, const char* name, Last last) noexcept {
  return opened(folder, name, O_PATH | O_DIRECTORY | unless_followed(last));
}
Fd duplicate(Handle fd) noexcept { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

std::optional<Status> status(Handle fd) noexcept {
  struct stat out {};
  return as_status(::fstat(fd, &out), out);
}
std::optional<Status> status(Handle folder, const char* name, Last last) noexcept {
  struct stat out {};
  return as_status(::fstatat(folder, name, &out, last == Last::itself ? AT_SYMLINK_NOFOLLOW : 0), out);
}
std::optional<std::vector<std::string>> list(Handle folder) {
  Fd again = opened(folder, ".", O_RDONLY | O_DIRECTORY);
  if (!again) return std::nullopt;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), ::closedir);
  if (!entries) return std::nullopt;
  static_cast<void>(again.release());
  std::vector<std::string> out;
  for (;;) {
    errno = 0;  // tells the end from a failure
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..")
      out.emplace_back(entry->d_name);
  }
  if (errno != 0) return std::nullopt;
  return out;
}
int may_write_into(Handle folder) noexcept { return ::faccessat(folder, ".", W_OK | X_OK, AT_EACCESS); }

int make_folder(Handle folder, const char* name, unsigned mode) noexcept {
  return ::mkdirat(folder, name, static_cast<mode_t>(mode));
}
int remove(Handle folder, const char* name) noexcept { return ::unlinkat(folder, name, 0); }
int remove_folder(Handle folder, const char* name) noexcept { return ::unlinkat(folder, name, AT_REMOVEDIR); }
int add_name(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept {
  return ::linkat(from_folder, from, to_folder, to, 0);
}

std::int64_t read_at(Handle fd, std::uint64_t offset, std::span<std::byte> out) noexcept {
  return repeated([&] { return ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset)); });
}
std::int64_t read(Handle fd, std::span<std::byte> out) noexcept {
  return repeated([&] { return ::read(fd, out.data(), out.size()); });
}
std::int64_t write_at(Handle fd, std::uint64_t offset, std::span<const std::byte> data) noexcept {
  return repeated([&] { return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset)); });
}
int set_size(Handle fd, std::uint64_t size) noexcept { return ::ftruncate(fd, static_cast<off_t>(size)); }
int sync(Handle fd) noexcept { return ::fsync(fd); }

std::uint32_t user() noexcept { return ::geteuid(); }
int set_mode(Handle fd, unsigned mode) noexcept { return ::fchmod(fd, static_cast<mode_t>(mode)); }

}  // namespace os
}  // namespace weighbridge::io

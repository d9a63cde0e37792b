// SPDX-License-Identifier: Apache-2.0
// What only Linux has, or has in its own way.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>

#include "io/os.h"

namespace weighbridge::io::os {
namespace {

constexpr std::size_t kMaxAttributeBytes = std::size_t{64} << 10;  // the kernel's limit of a list and of a value

// glibc has getentropy since 2.25 and renameat2 since 2.28. The released wheels are linked for 2.17, so there the
// kernel is called directly.
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if !__GLIBC_PREREQ(2, 28)
#define WB_OLD_GLIBC 1
#endif
#endif

int rename_with(Handle from_folder, const char* from, Handle to_folder, const char* to, unsigned flags) noexcept {
#ifdef WB_OLD_GLIBC
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
#else
  return ::renameat2(from_folder, from, to_folder, to, flags);
#endif
}

// The result of a call that fills a buffer and returns its length, or -1.
template <typename Call> std::optional<std::string> filled(Call&& call) {
  std::string out(kMaxAttributeBytes, '\0');
  const ssize_t length = call(out.data(), out.size());
  if (length < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(length));
  return out;
}

}  // namespace

Fd open_beneath(Handle folder, const char* path) noexcept {
  struct open_how how {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
    // EAGAIN: because of a concurrent rename, the kernel could not prove that the path stays inside.
    if (fd >= 0 || (errno != EINTR && (errno != EAGAIN || attempt >= 100))) return Fd(static_cast<int>(fd));
  }
}
// One handle for both, so that the link that is described is the one that is read.
std::optional<Link> link_at(Handle folder, const char* name) {
  const Fd fd(::openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const auto found = fd ? status(fd.get()) : std::nullopt;
  if (!found) return std::nullopt;
  if (found->kind != Kind::link) {
    errno = EINVAL;
    return std::nullopt;
  }
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlinkat(fd.get(), "", text.data(), text.size());
  if (length < 0) return std::nullopt;
  return Link{*found, std::string(text.data(), static_cast<std::size_t>(length))};
}

int rename_over(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept {
  return ::renameat(from_folder, from, to_folder, to);
}
int rename_unless_taken(Handle from_folder, const char* from, Handle to_folder, const char* to) noexcept {
  return rename_with(from_folder, from, to_folder, to, RENAME_NOREPLACE);
}
int exchange(Handle folder, const char* name, Handle other_folder, const char* other_name) noexcept {
  return rename_with(folder, name, other_folder, other_name, RENAME_EXCHANGE);
}

std::int64_t read_at(Handle fd, std::uint64_t offset, std::span<const std::span<std::byte>> out) noexcept {
  std::array<struct iovec, kMaxBuffers> pieces;
  const std::size_t count = std::min(out.size(), pieces.size());
  for (std::size_t i = 0; i < count; ++i) pieces[i] = {out[i].data(), out[i].size()};
  return ::preadv(fd, pieces.data(), static_cast<int>(count), static_cast<off_t>(offset));
}
std::shared_ptr<const std::byte> map(Handle fd, std::uint64_t offset, std::uint64_t length) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  if (length > SIZE_MAX - before) {
    errno = ENOMEM;
    return nullptr;
  }
  const auto size = static_cast<std::size_t>(before + length);
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset - before));
  if (at == MAP_FAILED) return nullptr;
  const std::shared_ptr<void> mapping(at, [size](void* mapped) { ::munmap(mapped, size); });
  return {mapping, static_cast<const std::byte*>(at) + before};
}
void will_need(Handle fd, std::uint64_t offset, std::uint64_t length) noexcept {
  ::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_WILLNEED);
}
std::int64_t next_data(Handle fd, std::uint64_t offset) noexcept {
  return ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
}
std::int64_t next_hole(Handle fd, std::uint64_t offset) noexcept {
  return ::lseek(fd, static_cast<off_t>(offset), SEEK_HOLE);
}
// Not posix_fallocate, which writes every block if the filesystem cannot reserve space.
int allocate(Handle fd, std::uint64_t size) noexcept {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  return result;
}
void start_writing(Handle fd, std::uint64_t offset, std::uint64_t length) noexcept {
  static_cast<void>(
      ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(length), SYNC_FILE_RANGE_WRITE));
}
int clone_range(Handle from, std::uint64_t at, std::uint64_t length, Handle to, std::uint64_t to_at) noexcept {
  struct file_clone_range what {};
  what.src_fd = from;
  what.src_offset = at;
  what.src_length = length;
  what.dest_offset = to_at;
  return ::ioctl(to, FICLONERANGE, &what);
}
std::int64_t copy_range(Handle from, std::uint64_t at, std::uint64_t length, Handle to, std::uint64_t to_at) noexcept {
  auto in = static_cast<loff_t>(at), out = static_cast<loff_t>(to_at);
  return ::syscall(SYS_copy_file_range, from, &in, to, &out, static_cast<std::size_t>(length), 0U);
}

std::optional<std::string> attribute_names(Handle fd) {
  return filled([&](char* out, std::size_t room) { return ::flistxattr(fd, out, room); });
}
std::optional<std::string> attribute(Handle fd, const char* name) {
  return filled([&](char* out, std::size_t room) { return ::fgetxattr(fd, name, out, room); });
}
int set_attribute(Handle fd, const char* name, std::string_view value) noexcept {
  return ::fsetxattr(fd, name, value.data(), value.size(), 0);
}
int remove_attribute(Handle fd, const char* name) noexcept { return ::fremovexattr(fd, name); }

bool is_shared() noexcept { return true; }
int lock(Handle fd) noexcept {
  int result = 0;
  do {
    result = ::flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result;
}
// The default signal that reports a process waiting to open the file would end this one.
int take_lease(Handle fd) noexcept {
  ::fcntl(fd, F_SETSIG, SIGURG);
  return ::fcntl(fd, F_SETLEASE, F_WRLCK);
}
void end_lease(Handle fd) noexcept { ::fcntl(fd, F_SETLEASE, F_UNLCK); }

bool random_bytes(std::span<std::byte> out) noexcept {
#ifdef WB_OLD_GLIBC
  return ::syscall(SYS_getrandom, out.data(), out.size(), 0) == static_cast<long>(out.size());
#else
  return ::getentropy(out.data(), out.size()) == 0;
#endif
}
std::size_t max_open_files() noexcept {
  struct rlimit files {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<std::size_t>(files.rlim_cur);
}

}  // namespace weighbridge::io::os

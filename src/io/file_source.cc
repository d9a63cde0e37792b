// SPDX-License-Identifier: Apache-2.0
// Regular files as sources: opening without blocking, positional reads, one lazy mapping, what changed since,
// neighbors.
#include "io/file_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"

namespace weighbridge::io {
namespace {

// O_NONBLOCK: opening a FIFO returns at once instead of waiting for a writer. It means nothing for a regular file.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

[[noreturn]] void refuse_kind(const std::string& path, mode_t mode) {
  base::misuse("not-a-file", "'" + path + "' is " + file_kind(mode) + ", not a regular file");
}

class Mapping {
 public:
  // null when the system will not map that range, with errno; Emscripten would not map but copy it.
  static std::shared_ptr<const Mapping> make(int fd, std::uint64_t offset, std::uint64_t length) {
#ifdef __EMSCRIPTEN__
    constexpr bool kMaps = false;
#else
    constexpr bool kMaps = true;
#endif
    if (!kMaps || !std::in_range<std::size_t>(length)) {
      errno = kMaps ? ENOMEM : ENOTSUP;
      return nullptr;
    }
    const auto size = base::to_size(length);
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset));
    if (at == MAP_FAILED) return nullptr;
    return std::shared_ptr<const Mapping>(new Mapping(at, size));
  }
  ~Mapping() { ::munmap(at_, length_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<const std::byte> span() const noexcept { return {static_cast<const std::byte*>(at_), length_}; }

 private:
  Mapping(void* at, std::size_t length) noexcept : at_(at), length_(length) {}
  void* at_;
  std::size_t length_;
};

bool same_time(const struct timespec& a, const struct timespec& b) noexcept {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void require_relative(std::string_view relative) {
  bool good = !relative.empty() && relative.front() != '/' && relative.back() != '/' &&
              relative.find('\0') == std::string_view::npos;
  for (std::size_t begin = 0; good && begin <= relative.size();) {
    const std::size_t end = std::min(relative.find('/', begin), relative.size());
    good = relative.substr(begin, end - begin) != "..";
    begin = end + 1;
  }
  if (!good)
    base::misuse("neighbour", "'" + std::string(relative) + "' does not name a file in the same folder or below it");
}

class FileSource final : public Source {
 public:
  FileSource(Fd fd, std::string path, const struct stat& opened, Access access)
      : fd_(std::move(fd)), path_(std::move(path)), opened_(opened), access_(access) {
    if (access_ == Access::mapped && size() > 0 && !whole())
      base::io_error("map", "cannot map '" + path_ + "' into memory", errno);
  }

  std::uint64_t size() const noexcept override { return static_cast<std::uint64_t>(opened_.st_size); }
  std::string_view name() const noexcept override { return path_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require_range(offset, out.size());
    if (out.empty()) return;
    if (access_ == Access::mapped) {
      std::memcpy(out.data(), whole()->span().subspan(base::to_size(offset)).data(), out.size());
      return;
    }
    const std::size_t got = pread_full(fd_.get(), offset, out, path_);
    if (got < out.size()) shrank(offset + got);
  }

  Bytes map(std::uint64_t offset, std::uint64_t length) const override {
    require_range(offset, length);
    if (length == 0) {
      // Not the Bytes{} that means "cannot map".
      static const std::shared_ptr<const std::byte> nothing = std::make_shared<const std::byte>();
      return {std::span<const std::byte>(nothing.get(), std::size_t{0}), nothing};
    }
    // What lies behind the end of a file that shrank already is SIGBUS; say it here while it can be said.
    struct stat now {};
    if (::fstat(fd_.get(), &now) == 0 && now.st_size < opened_.st_size) shrank(static_cast<std::uint64_t>(now.st_size));
    if (const auto all = whole()) return {all->span().subspan(base::to_size(offset), base::to_size(length)), all};
    // No room for the whole file in the address space; perhaps for this range.
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t before = offset % page;
    const auto part = Mapping::make(fd_.get(), offset - before, length + before);
    if (!part) return {};
    return {part->span().subspan(base::to_size(before)), part};
  }

  void check_unchanged() const override {
    struct stat held {
    }, there{};
    if (::fstat(fd_.get(), &held) != 0) base::io_error("read", "cannot read '" + path_ + "'", errno);
    if (held.st_size != opened_.st_size)
      changed("its size went from " + std::to_string(opened_.st_size) + " to " + std::to_string(held.st_size) +
              " bytes");
    if (!same_time(held.st_mtim, opened_.st_mtim)) changed("its modification time is another");
    if (::stat(path_.c_str(), &there) != 0) changed("it is no longer there");
    if (there.st_dev != opened_.st_dev || there.st_ino != opened_.st_ino) changed("another file stands in its place");
  }

  std::shared_ptr<const Source> neighbor(std::string_view relative) const override {
    require_relative(relative);
    const std::string below(relative), folder = split_path(path_).folder, path = join_path(folder, below);
    const Fd at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at) base::io_error("open", "cannot open the folder '" + folder + "'", errno);
    Fd found(open_beneath_by_kernel(at.get(), below));
    // Some sandboxes answer EPERM for a system call that they do not know.
    if (!found && (errno == ENOSYS || errno == EPERM)) found = Fd(open_beneath_by_hand(at.get(), below));
    if (!found) {
      if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return nullptr;  // no file has such a name
      if (errno == EXDEV || errno == ELOOP)
        base::io_error("outside",
                       "cannot open '" + path + "': a symbolic link leads out of the folder '" + folder + "'");
      base::io_error("open", "cannot open '" + path + "'", errno);
    }
    return source_from_fd(std::move(found), path);
  }

 private:
  void require_range(std::uint64_t offset, std::uint64_t length) const {
    if (!base::fits(offset, length, size())) base::misuse("range", "a range outside of '" + path_ + "' was asked for");
  }

  std::shared_ptr<const Mapping> whole() const {
    std::call_once(mapped_once_, [this] { mapping_ = Mapping::make(fd_.get(), 0, size()); });
    return mapping_;
  }

  [[noreturn]] void shrank(std::uint64_t end) const {
    base::io_error("short-read", "file shrank while it was read: '" + path_ + "' had " + std::to_string(size()) +
                                     " bytes and now ends at " + std::to_string(end));
  }
  [[noreturn]] void changed(const std::string& how) const {
    base::io_error("changed", "file changed while it was read: '" + path_ + "', " + how);
  }

  const Fd fd_;
  const std::string path_;
  const struct stat opened_;
  const Access access_;
  mutable std::once_flag mapped_once_;
  mutable std::shared_ptr<const Mapping> mapping_;
};

}  // namespace

int open_beneath_by_kernel([[maybe_unused]] int folder, [[maybe_unused]] const std::string& relative) noexcept {
#ifdef __linux__
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(kOpenFlags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, folder, relative.c_str(), &how, sizeof how);
    // EAGAIN: something was renamed meanwhile and the kernel could not tell whether the walk stayed inside.
    if (fd >= 0 || (errno != EINTR && (errno != EAGAIN || attempt >= 100))) return static_cast<int>(fd);
  }
#else
  errno = ENOSYS;
  return -1;
#endif
}

int open_beneath_by_hand(int folder, const std::string& relative) {
  Fd held;
  int at = folder;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t slash = relative.find('/', begin);
    if (slash == std::string::npos) break;
    if (slash > begin) {
      const std::string component = relative.substr(begin, slash - begin);
      Fd next(::openat(at, component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) {
        // A link here is ENOTDIR, which would pass for an absent file.
        struct stat there {};
        const int reason = errno;
        const bool link = ::fstatat(at, component.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(there.st_mode);
        errno = link ? ELOOP : reason;
        return -1;
      }
      held = std::move(next);
      at = held.get();
    }
    begin = slash + 1;
  }
  return ::openat(at, relative.c_str() + begin, kOpenFlags | O_NOFOLLOW);
}

std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access) {
  struct stat opened {};
  if (::fstat(fd.get(), &opened) != 0) base::io_error("open", "cannot open '" + path + "'", errno);
  if (!S_ISREG(opened.st_mode)) refuse_kind(path, opened.st_mode);
  return std::make_shared<FileSource>(std::move(fd), std::move(path), opened, access);
}

}  // namespace weighbridge::io

namespace weighbridge {

std::shared_ptr<const Source> open_file(const std::string& path, Access access) {
  io::require_path(path);
  int fd = -1;
  do {
    fd = ::open(path.c_str(), io::kOpenFlags);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    const int reason = errno;
    // A socket, or a device without a driver, cannot even be opened; what it is says more than ENXIO.
    struct stat there {};
    if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
      io::refuse_kind(path, there.st_mode);
    base::io_error("open", "cannot open '" + path + "'", reason);
  }
  return io::source_from_fd(io::Fd(fd), path, access);
}

}  // namespace weighbridge

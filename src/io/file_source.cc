// SPDX-License-Identifier: Apache-2.0
// Regular files as sources: opening without blocking, positional reads, a lazy mapping, detecting changes, and
// reopening a closed descriptor.
#include "io/file_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/uio.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "io/descriptor.h"
#include "io/place.h"

namespace weighbridge::io {
namespace {

[[noreturn]] void refuse_kind(const std::string& path, mode_t mode) {
  base::misuse_of(path, "not-a-file", std::string("this is ") + file_kind(mode) + ", not a regular file",
                  S_ISFIFO(mode) ? base::option_hint("standard-input") : Hint{});
}

class Mapping {
 public:
  // Null, with errno, if the system cannot map the range; Emscripten would copy it instead of mapping.
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

class FileSource final : public Source, public std::enable_shared_from_this<FileSource> {
 public:
  FileSource(Fd fd, std::string path, std::string there, const struct stat& opened, Access access,
             std::function<Fd()> again)
      : path_(std::move(path)),
        there_(there.empty() ? anchored(path_) : std::move(there)),
        opened_(opened),
        access_(access),
        again_(std::move(again)),
        file_(std::move(fd), again_ ? [this] { return reopen(); } : Descriptor::Again()) {
    if (access_ == Access::mapped && size() > 0 && !whole())
      base::io_error_of(path_, "map", "cannot be mapped into memory", errno);
  }

  std::uint64_t size() const noexcept override { return static_cast<std::uint64_t>(opened_.st_size); }
  std::string_view name() const noexcept override { return path_; }
  std::string_view path() const noexcept override { return there_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require_range(offset, out.size());
    if (out.empty()) return;
    if (access_ == Access::mapped) {
      std::memcpy(out.data(), whole()->span().subspan(base::to_size(offset)).data(), out.size());
      return;
    }
    const std::size_t got = pread_full(file_.use()->get(), offset, out, path_);
    if (got < out.size()) shrank(offset + got);
  }

  // Reads neighboring ranges with one system call, and the gaps between them into a scratch buffer.
  void read(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges) require_range(range.offset, range.out.size());
#ifdef __linux__
    if (access_ == Access::mapped) return Source::read(ranges);
    constexpr std::size_t kMostRanges = 512;  // half the limit of a call: each range may have a gap before it
    std::array<std::byte, 4096> between;
    std::vector<struct iovec> pieces;
    const auto file = file_.use();
    for (std::size_t first = 0; first < ranges.size();) {
      pieces.clear();
      std::uint64_t end = ranges[first].offset;
      std::size_t last = first;
      for (; last < ranges.size() && last - first < kMostRanges; ++last) {
        const ReadRange& next = ranges[last];
        if (next.offset < end || next.offset - end > between.size()) break;
        if (next.offset > end) pieces.push_back({between.data(), base::to_size(next.offset - end)});
        if (!next.out.empty()) pieces.push_back({next.out.data(), next.out.size()});
        end = next.offset + next.out.size();
      }
      const std::uint64_t wanted = end - ranges[first].offset;
      ssize_t got = -1;
      if (last - first > 1 && std::in_range<ssize_t>(wanted))
        got = ::preadv(file->get(), pieces.data(), static_cast<int>(pieces.size()),
                       static_cast<off_t>(ranges[first].offset));
      // After a short or failed call, and for single ranges, read the ranges one by one, which reports the exact error.
      if (got < 0 || static_cast<std::uint64_t>(got) != wanted)
        for (std::size_t i = first; i < last; ++i) read_at(ranges[i].offset, ranges[i].out);
      first = last;
    }
#else
    Source::read(ranges);
#endif
  }

  ReadCost cost() const noexcept override { return {.gap = access_ == Access::mapped ? 0U : 4096U}; }

  void will_need([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t length) const noexcept override {
#ifdef __linux__
    try {
      ::posix_fadvise(file_.use()->get(), static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_WILLNEED);
    } catch (...) {  // the next read reports why it cannot be reopened
    }
#endif
  }

  Bytes map(std::uint64_t offset, std::uint64_t length) const override {
    require_range(offset, length);
    if (length == 0) {
      // Not the Bytes{} that means "cannot map".
      static const std::shared_ptr<const std::byte> nothing = std::make_shared<const std::byte>();
      return {std::span<const std::byte>(nothing.get(), std::size_t{0}), nothing};
    }
    // Pages beyond the end of a file that has shrunk raise SIGBUS: report it here as an error instead.
    const auto file = file_.use();
    struct stat now {};
    if (::fstat(file->get(), &now) == 0 && now.st_size < opened_.st_size)
      shrank(static_cast<std::uint64_t>(now.st_size));
    if (const auto all = whole()) return {all->span().subspan(base::to_size(offset), base::to_size(length)), all};
    // The whole file may not fit into the address space where this range does.
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t before = offset % page;
    const auto part = Mapping::make(file->get(), offset - before, length + before);
    if (!part) return {};
    return {part->span().subspan(base::to_size(before)), part};
  }

  std::uint64_t written_end() const noexcept override {
#ifdef SEEK_DATA
    std::shared_ptr<const Fd> file;
    try {
      file = file_.use();
    } catch (...) {
      return size();
    }
    // Finds where the hole at the end of the file begins: the first offset with no data after it, which lseek reports
    // as ENXIO.
    std::uint64_t low = 0, high = size();
    const auto is_hole = [&](std::uint64_t from) {
      return ::lseek(file->get(), static_cast<off_t>(from), SEEK_DATA) < 0 && errno == ENXIO;
    };
    if (high == 0 || !is_hole(high - 1)) return high;
    for (--high; low < high;) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (is_hole(middle))
        high = middle;
      else
        low = middle + 1;
    }
    return high;
#else
    return size();
#endif
  }

  void check_unchanged() const override {
    struct stat held {
    }, there{};
    if (::fstat(file_.use()->get(), &held) != 0) base::io_error_of(path_, "read", "cannot be read", errno);
    require_same_content(held);
    if (::stat(there_.c_str(), &there) != 0) changed("it is no longer there");
    require_same_file(there);
    require_same_change(held);
  }

  std::shared_ptr<const Place> place() const override { return place_beside(shared_from_this(), there_); }

 private:
  void require_range(std::uint64_t offset, std::uint64_t length) const {
    if (!base::fits(offset, length, size())) base::misuse_of(path_, "range", "a range outside the file was requested");
  }

  void require_same_file(const struct stat& now) const {
    if (now.st_dev != opened_.st_dev || now.st_ino != opened_.st_ino || !S_ISREG(now.st_mode))
      changed("another file has taken its place");
  }
  void require_same_content(const struct stat& now) const {
    if (now.st_size != opened_.st_size)
      changed("its size went from " + std::to_string(opened_.st_size) + " to " + std::to_string(now.st_size) +
              " bytes");
    if (!same_time(now.st_mtim, opened_.st_mtim)) changed("its modification time changed");
  }
  // Programs cannot set the change time, so it reveals a modification time that was set back.
  void require_same_change(const struct stat& now) const {
    if (!same_time(now.st_ctim, opened_.st_ctim)) changed("its change time (ctime) changed");
  }

  // Continue only if it is the file that was opened before, unchanged.
  Fd reopen() const {
    Fd fd = open_making_room(again_);
    if (!fd && (errno == ENOENT || errno == ENOTDIR)) changed("it is no longer there");
    if (!fd && (errno == EXDEV || errno == ELOOP)) changed("a symbolic link has taken its place");
    if (!fd) base::io_error_of(path_, "open", "cannot be opened again", errno);
    struct stat now {};
    if (::fstat(fd.get(), &now) != 0) base::io_error_of(path_, "open", "cannot be opened again", errno);
    require_same_file(now);
    require_same_content(now);
    require_same_change(now);
    return fd;
  }

  std::shared_ptr<const Mapping> whole() const {
    std::call_once(mapped_once_, [this] { mapping_ = Mapping::make(file_.use()->get(), 0, size()); });
    return mapping_;
  }

  [[noreturn]] void shrank(std::uint64_t end) const {
    base::io_error_of(path_, "short-read",
                      "the file shrank while it was read: it had " + std::to_string(size()) +
                          " bytes and now ends at " + std::to_string(end));
  }
  [[noreturn]] void changed(const std::string& how) const {
    base::io_error_of(path_, "changed", "the file changed while it was read: " + how);
  }

  const std::string path_, there_;  // as given, and anchored()
  const struct stat opened_;
  const Access access_;
  const std::function<Fd()> again_;
  const Descriptor file_;
  mutable std::once_flag mapped_once_;
  mutable std::shared_ptr<const Mapping> mapping_;
};

}  // namespace

std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access, std::function<Fd()> again,
                                             std::string there) {
  struct stat opened {};
  if (::fstat(fd.get(), &opened) != 0) base::io_error_of(path, "open", "cannot be opened", errno);
  if (!S_ISREG(opened.st_mode)) refuse_kind(path, opened.st_mode);
  return std::make_shared<FileSource>(std::move(fd), std::move(path), std::move(there), opened, access,
                                      std::move(again));
}

Fd open_to_read(const std::string& path) {
  require_path(path);
  Fd fd = open_making_room([&] {
    int made = -1;
    for (int attempt = 0;; ++attempt) {
      made = ::open(path.c_str(), kOpenToRead);
      // EWOULDBLOCK: an edit in place holds a lease on the file, for some milliseconds.
      if (made >= 0 || (errno != EINTR && (errno != EWOULDBLOCK || attempt >= 1000))) break;
      if (errno == EWOULDBLOCK) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return Fd(made);
  });
  if (!fd) {
    const int reason = errno;
    // A socket, or a device without a driver, cannot be opened; its kind says more than ENXIO.
    struct stat there {};
    if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
      refuse_kind(path, there.st_mode);
    base::io_error_of(path, "open", "cannot be opened", reason);
  }
  return fd;
}

std::shared_ptr<const Source> source_over(const Fd& fd, std::string path) {
  Fd again(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!again) base::io_error_of(path, "open", "cannot be opened", errno);
  return source_from_fd(std::move(again), std::move(path));
}

}  // namespace weighbridge::io

namespace weighbridge {

std::shared_ptr<const Source> open_file(const std::string& path, Access access) {
  return io::source_from_fd(io::open_to_read(path), path, access);
}

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Regular files as sources: opening without blocking, positional reads, a lazy mapping, detecting changes, and
// reopening a closed descriptor.
#include "io/file_source.h"

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
#include "io/journal.h"
#include "io/place.h"

namespace weighbridge::io {
namespace {

[[noreturn]] void refuse_kind(const std::string& path, os::Kind kind) {
  base::misuse_of(path, "not-a-file", std::string("this is ") + file_kind(kind) + ", not a regular file",
                  kind == os::Kind::fifo ? base::option_hint("standard-input") : Hint{});
}

class FileSource final : public Source, public std::enable_shared_from_this<FileSource> {
 public:
  FileSource(Fd fd, std::string path, std::string there, const os::Status& opened, Access access,
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

  std::uint64_t size() const noexcept override { return opened_.size; }
  std::string_view name() const noexcept override { return path_; }
  std::string_view path() const noexcept override { return there_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require_range(offset, out.size());
    if (out.empty()) return;
    if (access_ == Access::mapped) {
      std::memcpy(out.data(), whole() + base::to_size(offset), out.size());
      return;
    }
    const std::size_t got = pread_full(file_.use()->get(), offset, out, path_);
    if (got < out.size()) shrank(offset + got);
  }

  // Reads neighboring ranges with one system call, and the gaps between them into a scratch buffer.
  void read(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges) require_range(range.offset, range.out.size());
    if (access_ == Access::mapped) return Source::read(ranges);
    constexpr std::size_t kMaxRanges = os::kMaxBuffers / 2;  // each range may have a gap before it
    std::array<std::byte, 4096> between;
    std::vector<std::span<std::byte>> pieces;
    const auto file = file_.use();
    for (std::size_t first = 0; first < ranges.size();) {
      pieces.clear();
      std::uint64_t end = ranges[first].offset;
      std::size_t last = first;
      for (; last < ranges.size() && last - first < kMaxRanges; ++last) {
        const ReadRange& next = ranges[last];
        if (next.offset < end || next.offset - end > between.size()) break;
        if (next.offset > end) pieces.emplace_back(between.data(), base::to_size(next.offset - end));
        if (!next.out.empty()) pieces.push_back(next.out);
        end = next.offset + next.out.size();
      }
      const std::uint64_t wanted = end - ranges[first].offset;
      std::int64_t got = -1;
      if (last - first > 1) got = os::read_at(file->get(), ranges[first].offset, pieces);
      // After a short or failed call, and for single ranges, read the ranges one by one, which reports the exact error.
      if (got < 0 || static_cast<std::uint64_t>(got) != wanted)
        for (std::size_t i = first; i < last; ++i) read_at(ranges[i].offset, ranges[i].out);
      first = last;
    }
  }

  void will_need(std::uint64_t offset, std::uint64_t length) const noexcept override {
    try {
      os::will_need(file_.use()->get(), offset, length);
    } catch (...) {  // the next read reports why it cannot be reopened
    }
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
    if (const auto now = os::status(file->get()); now && now->size < size()) shrank(now->size);
    if (const std::byte* const all = whole()) return {{all + base::to_size(offset), base::to_size(length)}, mapping_};
    // The whole file may not fit into the address space where this range does.
    auto part = os::map(file->get(), offset, length);
    if (!part) return {};
    const std::byte* const begin = part.get();
    return {{begin, base::to_size(length)}, std::move(part)};
  }

  std::uint64_t written_end() const noexcept override {
    std::shared_ptr<const Fd> file;
    try {
      file = file_.use();
    } catch (...) {
      return size();
    }
    // Finds where the hole at the end of the file begins: the first offset with no data after it.
    std::uint64_t low = 0, high = size();
    const auto is_hole = [&](std::uint64_t from) { return os::next_data(file->get(), from) < 0 && errno == ENXIO; };
    if (high == 0 || !is_hole(high - 1)) return high;
    for (--high; low < high;) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (is_hole(middle))
        high = middle;
      else
        low = middle + 1;
    }
    return high;
  }

  void check_unchanged() const override {
    const auto held = os::status(file_.use()->get());
    if (!held) base::io_error_of(path_, "read", "cannot be read", errno);
    require_same_content(*held);
    const auto there = os::status(os::kHere, there_.c_str(), os::Last::followed);
    if (!there) changed("it is no longer there");
    require_same_file(*there);
    require_same_change(*held);
  }

  std::shared_ptr<const Place> place() const override { return place_beside(shared_from_this(), there_); }

 private:
  void require_range(std::uint64_t offset, std::uint64_t length) const {
    if (!base::fits(offset, length, size())) base::misuse_of(path_, "range", "a range outside the file was requested");
  }

  void require_same_file(const os::Status& now) const {
    if (!now.is_same_file(opened_) || now.kind != os::Kind::file) changed("another file has taken its place");
  }
  void require_same_content(const os::Status& now) const {
    if (now.size != size())
      changed("its size went from " + std::to_string(size()) + " to " + std::to_string(now.size) + " bytes");
    if (now.modified != opened_.modified) changed("its modification time changed");
  }
  // Programs cannot set the change time, so it reveals a modification time that was set back.
  void require_same_change(const os::Status& now) const {
    if (now.changed != opened_.changed) changed("its change time (ctime) changed");
  }

  // Continue only if it is the file that was opened before, unchanged.
  Fd reopen() const {
    Fd fd = open_making_room(again_);
    if (!fd && (errno == ENOENT || errno == ENOTDIR)) changed("it is no longer there");
    if (!fd && (errno == EXDEV || errno == ELOOP)) changed("a symbolic link has taken its place");
    if (!fd) base::io_error_of(path_, "open", "cannot be opened again", errno);
    const auto now = os::status(fd.get());
    if (!now) base::io_error_of(path_, "open", "cannot be opened again", errno);
    require_same_file(*now);
    require_same_content(*now);
    require_same_change(*now);
    return fd;
  }

  // Null, with errno at the first call, if the system cannot map the file.
  const std::byte* whole() const {
    std::call_once(mapped_once_, [this] { mapping_ = os::map(file_.use()->get(), 0, size()); });
    return mapping_.get();
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
  const os::Status opened_;
  const Access access_;
  const std::function<Fd()> again_;
  const Descriptor file_;
  mutable std::once_flag mapped_once_;
  mutable std::shared_ptr<const std::byte> mapping_;
};

}  // namespace

std::shared_ptr<const Source> source_from_fd(Fd fd, std::string path, Access access, std::function<Fd()> again,
                                             std::string there) {
  const auto opened = os::status(fd.get());
  if (!opened) base::io_error_of(path, "open", "cannot be opened", errno);
  if (opened->kind != os::Kind::file) refuse_kind(path, opened->kind);
  return std::make_shared<FileSource>(std::move(fd), std::move(path), std::move(there), *opened, access,
                                      std::move(again));
}

Fd open_to_read(const std::string& path) {
  require_path(path);
  Fd fd = open_making_room([&] {
    Fd made = os::open_to_read(os::kHere, path.c_str(), os::Last::followed);
    // EWOULDBLOCK: an edit in place holds a lease on the file, for some milliseconds.
    for (int attempt = 0; !made && errno == EWOULDBLOCK && attempt < 1000; ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      made = os::open_to_read(os::kHere, path.c_str(), os::Last::followed);
    }
    return made;
  });
  if (!fd) {
    const int reason = errno;
    // A socket, or a device without a driver, cannot be opened; its kind says more than ENXIO.
    const auto there = os::status(os::kHere, path.c_str(), os::Last::followed);
    if (there && there->kind != os::Kind::file && there->kind != os::Kind::folder) refuse_kind(path, there->kind);
    const std::string mixed = path + std::string(kApplying);
    if (reason == ENOENT && os::status(os::kHere, mixed.c_str())) {
      Finding found;
      found.rule = "io/applying";
      found.kind = Kind::io;
      found.message =
          "a patch is being applied to this file, or was when a run was killed: recover it, or apply the "
          "patch again";
      found.file.name = path;
      found.hint = base::option_hint("recover", path);
      throw Error(std::move(found));
    }
    base::io_error_of(path, "open", "cannot be opened", reason);
  }
  return fd;
}

std::uint64_t names_of(const Source& source) {
  const std::string path(source.path());
  const auto there = path.empty() ? std::nullopt : os::status(os::kHere, path.c_str(), os::Last::followed);
  return there ? there->links : 1;
}

std::shared_ptr<const Source> source_over(const Fd& fd, std::string path) {
  Fd again = os::duplicate(fd.get());
  if (!again) base::io_error_of(path, "open", "cannot be opened", errno);
  return source_from_fd(std::move(again), std::move(path));
}

}  // namespace weighbridge::io

namespace weighbridge {

std::shared_ptr<const Source> open_file(const std::string& path, Access access) {
  return io::source_from_fd(io::open_to_read(path), path, access);
}

}  // namespace weighbridge

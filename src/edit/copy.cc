// SPDX-License-Identifier: Apache-2.0
// FICLONERANGE for whole blocks, copy_file_range for the rest, and reads and writes where neither is offered.
#include "edit/copy.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "io/fd.h"

namespace weighbridge::edit_files {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;  // through memory
constexpr std::uint64_t kShare = std::uint64_t{1} << 30;  // one call, after which the caller may stop the job

bool share([[maybe_unused]] int from, [[maybe_unused]] int to, [[maybe_unused]] const Range& range) noexcept {
#ifdef FICLONERANGE
  struct file_clone_range what {};
  what.src_fd = from;
  what.src_offset = range.from;
  what.src_length = range.length;
  what.dest_offset = range.to;
  return ::ioctl(to, FICLONERANGE, &what) == 0;
#else
  return false;
#endif
}

// The bytes copied by one call; 0 if the system cannot copy this way, and nothing was copied.
std::uint64_t copy_some([[maybe_unused]] int from, [[maybe_unused]] int to,
                        [[maybe_unused]] const Range& range) noexcept {
#if defined(__linux__) && defined(SYS_copy_file_range)
  auto in = static_cast<loff_t>(range.from), out = static_cast<loff_t>(range.to);
  const long done = ::syscall(SYS_copy_file_range, from, &in, to, &out, static_cast<std::size_t>(range.length), 0U);
  return done > 0 ? static_cast<std::uint64_t>(done) : 0;
#else
  return 0;
#endif
}

class Copy {
 public:
  Copy(int from, int to, const std::string& path, const std::function<void(std::uint64_t)>& go_on)
      : from_(from), to_(to), path_(path), go_on_(go_on) {}

  // Between holes, which are skipped.
  std::uint64_t run(const Range& range) {
    const std::uint64_t end = range.from + range.length;
    for (std::uint64_t at = range.from; at < end;) {
      std::uint64_t data = at, hole = end;
#ifdef SEEK_DATA
      const off_t next = ::lseek(from_, static_cast<off_t>(at), SEEK_DATA);
      if (next < 0 && errno == ENXIO) data = end;
      if (next >= 0) data = std::min(end, static_cast<std::uint64_t>(next));
      if (next >= 0 && data < end)
        if (const off_t stop = ::lseek(from_, static_cast<off_t>(data), SEEK_HOLE); stop > 0)
          hole = std::min(end, static_cast<std::uint64_t>(stop));
#endif
      if (data > at) go_on_(data - at);
      if (data < hole) copy({data, range.to + (data - range.from), hole - data});
      at = hole;
    }
    return shared_;
  }

 private:
  void copy(Range range) {
    const std::uint64_t first = (kBlock - range.from % kBlock) % kBlock;
    if (may_share_ && (range.from - range.to) % kBlock == 0 && range.length >= first + kBlock) {
      move({range.from, range.to, first});
      Range whole{range.from + first, range.to + first, (range.length - first) / kBlock * kBlock};
      const std::uint64_t rest = range.length - first - whole.length;
      while (whole.length > 0) {
        const Range some{whole.from, whole.to, std::min(whole.length, kShare)};
        if (!share(from_, to_, some)) {
          may_share_ = false;
          break;
        }
        advance(whole, some.length);
        shared_ += some.length;
        go_on_(some.length);
      }
      whole.length += rest;
      range = whole;
    }
    move(range);
  }

  static void advance(Range& range, std::uint64_t by) {
    range.from += by;
    range.to += by;
    range.length -= by;
  }

  void move(Range range) {
    while (range.length > 0 && may_copy_) {
      const std::uint64_t done = copy_some(from_, to_, {range.from, range.to, std::min(range.length, 4 * kPiece)});
      if (done == 0) may_copy_ = false;
      advance(range, done);
      go_on_(done);
    }
    while (range.length > 0) {
      piece_.resize(base::to_size(std::min(kPiece, range.length)));
      const std::size_t got = io::pread_full(from_, range.from, piece_, path_);
      if (got < piece_.size()) base::io_error_of(path_, "short-read", "the file shrank while it was copied");
      io::pwrite_full(to_, range.to, piece_, path_);
      advance(range, got);
      go_on_(got);
    }
  }

  const int from_, to_;
  const std::string& path_;
  const std::function<void(std::uint64_t)>& go_on_;
  bool may_share_ = true, may_copy_ = true;
  std::uint64_t shared_ = 0;
  std::vector<std::byte> piece_;
};

}  // namespace

std::uint64_t copy_range(int from, int to, const Range& range, const std::string& path,
                         const std::function<void(std::uint64_t)>& go_on) {
  return Copy(from, to, path, go_on).run(range);
}

}  // namespace weighbridge::edit_files

// SPDX-License-Identifier: Apache-2.0
// Shares whole blocks, lets the system copy the rest, and reads and writes where it offers neither.
#include "edit/copy.h"

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

class Copy {
 public:
  Copy(int from, int to, const std::string& path, const std::function<void(std::uint64_t)>& go_on)
      : from_(from), to_(to), path_(path), go_on_(go_on) {}

  // Between holes, which are skipped.
  std::uint64_t run(const Range& range) {
    const std::uint64_t end = range.from + range.length;
    for (std::uint64_t at = range.from; at < end;) {
      std::uint64_t data = at, hole = end;
      const std::int64_t next = io::os::next_data(from_, at);
      if (next < 0 && errno == ENXIO) data = end;
      if (next >= 0) data = std::min(end, static_cast<std::uint64_t>(next));
      if (next >= 0 && data < end)
        if (const std::int64_t stop = io::os::next_hole(from_, data); stop > 0)
          hole = std::min(end, static_cast<std::uint64_t>(stop));
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
        if (io::os::clone_range(from_, some.from, some.length, to_, some.to) != 0) {
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
      const std::int64_t got = io::os::copy_range(from_, range.from, std::min(range.length, 4 * kPiece), to_, range.to);
      may_copy_ = got > 0;
      const auto done = static_cast<std::uint64_t>(std::max<std::int64_t>(got, 0));
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

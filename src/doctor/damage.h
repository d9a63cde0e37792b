// SPDX-License-Identifier: Apache-2.0
// Damage that a file can have: no end, ranges that were never written, an archive without its directory. What is left
// can be opened as if it were whole.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "io/forwarding_source.h"
#include "weighbridge/context.h"
#include "weighbridge/doctor.h"
#include "weighbridge/source.h"

namespace weighbridge::doctor {

// A damaged file as it would be with an end, so that a reader can open what is there.

// The file's first `cut` bytes, at most all of them, then `tail`, then zeros up to `size`. Readers get no more zeros
// than the file has bytes, and 256 KiB for what they read ahead: `size` may be what a few damaged bytes say.
class Continued final : public io::InterposedSource {
 public:
  Continued(std::shared_ptr<const Source> file, std::uint64_t cut, std::string tail, std::uint64_t size)
      : InterposedSource(std::move(file)), cut_(std::min(cut, of().size())), tail_(std::move(tail)), size_(size) {}

  std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t written_end() const noexcept override { return size_; }
  void will_need(std::uint64_t, std::uint64_t) const noexcept override {}
  std::string_view path() const noexcept override { return {}; }           // which has other bytes
  std::shared_ptr<const Place> place() const override { return nullptr; }  // what is beside it may be damaged too
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto take = [&](std::uint64_t end) {  // of `out`, what lies before `end`
      const auto part = out.first(base::to_size(std::min<std::uint64_t>(end - std::min(end, offset), out.size())));
      out = out.subspan(part.size());
      return part;
    };
    const auto of_file = take(cut_);
    if (!of_file.empty()) of().read_at(offset, of_file);
    offset += of_file.size();
    const auto of_tail = take(cut_ + tail_.size());
    if (!of_tail.empty())
      std::copy_n(std::as_bytes(std::span(tail_)).begin() + place_in_tail(offset), of_tail.size(), of_tail.begin());
    zeros_ += out.size();
    if (!out.empty() && exhausted()) base::io_error_of(name(), "read", "is read beyond its end");
    std::ranges::fill(out, std::byte{0});
  }
  // Whether a reader wanted more zeros than it may have.
  bool exhausted() const noexcept { return zeros_.load() > cut_ + kMoreZeros; }

 private:
  static constexpr std::uint64_t kMoreZeros = std::uint64_t{256} << 10;

  std::ptrdiff_t place_in_tail(std::uint64_t offset) const { return static_cast<std::ptrdiff_t>(offset - cut_); }

  const std::uint64_t cut_;
  const std::string tail_;
  const std::uint64_t size_;
  mutable std::atomic<std::uint64_t> zeros_{0};
};

// Ranges of zeros that no tensor explains: a download that reserved its space and stopped, or lost a block.

// Zeros are counted in blocks of this many bytes, the blocks of file systems and downloads.
inline constexpr std::size_t kZeroBlock = 4096;

struct Zeros {
  // The largest range of whole zero blocks, of at least `least` bytes, that begins or ends inside one of the extents,
  // more than a block away from its ends. A tensor that is zeros from end to end is not such a range.
  std::optional<ByteRange> hole{};
  std::uint64_t tail = 0;  // where the zeros begin that reach the end of the file; its size if it ends otherwise
};

// [reads] The whole file. `extents` are those of its tensors.
Zeros find_zeros(const Source&, std::vector<ByteRange> extents, std::uint64_t least, const Context&);

// Archives that have lost their directory, which is at the end of a zip file: a new one is made from the headers before
// the members.

// The file up to its last whole member, with a directory after it; null if it does not begin with a whole member, or
// has more than the limits allow. A member whose header lacks its size, as PyTorch writes them, ends at a descriptor
// that states the size which it then has.
std::shared_ptr<const Source> with_new_directory(std::shared_ptr<const Source>, const Limits&);

}  // namespace weighbridge::doctor

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
#include "core/reading/rules.h"
#include "io/forwarding_source.h"
#include "weighbridge/context.h"
#include "weighbridge/doctor.h"
#include "weighbridge/source.h"

namespace weighbridge::doctor {

namespace rules {
#define WB_RULES "doctor/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

// A damaged file as it would be with an end, so that a reader can open what is there.

// `front`, a range of the file's bytes as far as they are there, `tail`, and zeros up to `size`. Readers get no more
// zeros than the file has bytes, and 256 KiB for what they read ahead: `size` may be what a few damaged bytes say.
class Continued final : public io::InterposedSource {
 public:
  Continued(std::shared_ptr<const Source> file, const ByteRange& range, std::string tail, std::uint64_t size,
            std::string front = {})
      : InterposedSource(std::move(file)),
        front_(std::move(front)),
        begin_(std::min(range.offset, of().size())),
        cut_(front_.size() + std::min(range.length, of().size() - begin_)),
        tail_(std::move(tail)),
        size_(size) {}

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
    const auto copy = [&](const std::string& text, std::uint64_t begins, std::span<std::byte> to) {
      if (to.empty()) return;
      std::ranges::copy(std::as_bytes(std::span(text)).subspan(base::to_size(offset - begins), to.size()), to.begin());
      offset += to.size();
    };
    copy(front_, 0, take(front_.size()));
    const auto of_file = take(cut_);
    if (!of_file.empty()) of().read_at(begin_ + offset - front_.size(), of_file);
    offset += of_file.size();
    copy(tail_, cut_, take(cut_ + tail_.size()));
    zeros_ += out.size();
    if (!out.empty() && exhausted()) base::io_error_of(name(), "read", "is read beyond its end");
    std::ranges::fill(out, std::byte{0});
  }
  // Whether a reader wanted more zeros than it may have.
  bool exhausted() const noexcept { return zeros_.load() > cut_ + kMoreZeros; }

 private:
  static constexpr std::uint64_t kMoreZeros = std::uint64_t{256} << 10;

  const std::string front_;
  const std::uint64_t begin_, cut_;  // in the file, where the range begins; here, where it ends
  const std::string tail_;
  const std::uint64_t size_;
  mutable std::atomic<std::uint64_t> zeros_{0};
};

// Ranges of zeros that no tensor explains: a download that reserved its space and stopped, or lost a block.

// Zeros are counted in blocks of this many bytes, the blocks of file systems and downloads.
inline constexpr std::size_t kZeroBlock = 4096;

struct Zeros {
  // The largest range of whole zero blocks, of at least `minimum` bytes, that begins or ends inside one of the extents,
  // more than a block away from its ends. A tensor that is zeros from end to end is not such a range.
  std::optional<ByteRange> hole{};
  std::uint64_t head = 0;  // zeros that the file begins with
  std::uint64_t tail = 0;  // where the zeros begin that reach the end of the file; its size if it ends otherwise
};

// [reads] The whole file. `extents` are those of its tensors.
Zeros find_zeros(const Source&, std::vector<ByteRange> extents, std::uint64_t minimum, const Context&);

// Archives that have lost their directory, which is at the end of a zip file: a new one is made from the headers before
// the members.

// The file up to its last whole member, with a directory after it; null if it does not begin with a whole member, or
// has more than the limits allow. A member whose header lacks its size, as PyTorch writes them, ends at a descriptor
// that states the size which it then has.
std::shared_ptr<const Source> with_new_directory(std::shared_ptr<const Source>, const Limits&);

// A model that begins or ends elsewhere than its file: a download that began again, a beginning that belongs to another
// file, an append that was killed.

struct Inner {
  enum class How : std::uint8_t {
    repeated,  // the bytes before it are equal to those that it begins with
    late,      // other bytes are before it
    older      // other bytes are after its end
  };
  How how = How::late;
  ByteRange range{};
  bool whole = false;  // these bytes are a valid model
};

// [reads] The whole file, once, and some of it again. `format` is what the file should be; empty: any. A file
// that is valid to its last byte may still be a part of a model, and then the beginning of all of it: `only_repeated`.
// Only `repeated` may be not whole.
std::optional<Inner> find_inner(const std::shared_ptr<const Source>&, std::string_view format, bool only_repeated,
                                const Context&);

// Digests in names: stores of downloads name a file after its bytes.

// 64 digits, also after "sha256-", are a SHA-256; 40 are Git's SHA-1. Empty: the name states none.
std::string_view digest_in(std::string_view name) noexcept;
// [reads] The digest of the bytes that has as many digits as `stated`.
std::string digest_of(const Source&, std::string_view stated, const Context&);

// Numbers that no training leaves.

struct NotFinite {
  std::string tensor{};
  std::uint64_t nans = 0, infinities = 0;
  bool unread = false;  // a limit forbids it
};
// [reads] All tensors of floating point; one that is unread stands for all if a limit forbids the work. Skips
// infinities of masks, and tensors that this build does not support.
std::vector<NotFinite> find_not_finite(const Model&, const Context&);

// Whether config.json describes these tensors.

struct Disagreement {
  std::vector<std::string> missing{};  // tensors that it implies
  std::vector<Finding> findings{};     // what else disagrees, and gaps between layers
};
Disagreement compare_with_config(const Model&);

// Folders whose index does not describe their shards.

// [reads] The folder as it would be with an index of all its shards; null if that cannot be shown to be the model: a
// tensor of the index is in none of them, or one is in two; there is no index, and not every shard either. An index
// that names none of the files may list tensors that are in none: these are `lost`.
std::shared_ptr<const Place> with_new_index(const std::shared_ptr<const Place>&, const Context&,
                                            std::vector<std::string>& lost);

// [reads] A .npy file under a header that NumPy reads, if the text of its own states a type and a shape that its data
// have. Null: it does not.
std::shared_ptr<const Source> with_new_npy_header(const std::shared_ptr<const Source>&, std::string& text);

// Bytes of the model's files that belong to no tensor.

struct Unused {
  std::string file{};
  std::uint64_t bytes = 0, of = 0;
};
// [reads] Of storages in archives of PyTorch and of files of external data, without padding: zeros, which in external
// data are no more than it takes to align the next tensor.
std::vector<Unused> find_unused(const Model&, const Context&);

}  // namespace weighbridge::doctor

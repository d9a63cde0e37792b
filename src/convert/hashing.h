// SPDX-License-Identifier: Apache-2.0
// What a conversion records while it writes: the effects of casts, and XXH3-128 of each segment of the logical bytes,
// which read-back compares. core/payload/part_digest.h has the digests that are written to files.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codecs/cast.h"
#include "codecs/checksum.h"
#include "convert/rep.h"

namespace weighbridge::convert {

struct Record {
  std::vector<core::Stored> stored;            // one per payload
  std::vector<codecs::CastTally> casts;        // likewise; all zero where nothing was cast
  std::vector<std::size_t> first_hash;         // the first index in `hashes` of each payload; one extra at the end
  std::vector<codecs::Hash128> hashes;         // one per segment: see hashed_bytes()
  std::vector<codecs::Hash128> prefix_hashes;  // one per segment of the prefix
  std::optional<std::string> sealed_head;      // the head after WriteLayout::finalize
  std::string tail;
  std::uint64_t tail_offset = 0;
  std::uint64_t size = 0;  // of the whole file

  std::span<codecs::Hash128> hashes_of(std::size_t payload) {
    return std::span(hashes).subspan(first_hash[payload], first_hash[payload + 1] - first_hash[payload]);
  }
  std::span<const codecs::Hash128> hashes_of(std::size_t payload) const {
    return std::span(hashes).subspan(first_hash[payload], first_hash[payload + 1] - first_hash[payload]);
  }
};

// How many bytes of a payload are hashed: the stored bytes if they are copied verbatim (this build may be unable to
// decode them), else the logical bytes.
inline std::uint64_t hashed_bytes(const core::Payload& p) noexcept {
  return p.form == core::Payload::Form::stored ? p.stored_size : p.logical_size;
}

// Hashes a stream segment by segment. `out` has one slot for each segment of `size` bytes.
class SegmentHasher {
 public:
  SegmentHasher(std::uint64_t size, std::span<codecs::Hash128> out) : left_(size), out_(out) {}
  // Returns false when the stream is longer than `size`.
  bool update(std::span<const std::byte> data) {
    if (data.size() > left_) return false;
    left_ -= data.size();
    while (!data.empty()) {
      const std::size_t take = static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), kSegment - filled_));
      if (filled_ == 0 && (take == kSegment || (take == data.size() && left_ == 0))) {
        out_[next_++] = codecs::xxh3_128(data.first(take));
      } else {
        if (!state_) state_.emplace();
        state_->update(data.first(take));
        filled_ += take;
        if (filled_ == kSegment || (take == data.size() && left_ == 0)) flush();
      }
      data = data.subspan(take);
    }
    return true;
  }
  std::uint64_t left() const noexcept { return left_; }

 private:
  void flush() {
    out_[next_++] = state_->finish();
    state_->reset();
    filled_ = 0;
  }
  std::uint64_t left_;
  std::span<codecs::Hash128> out_;
  std::size_t next_ = 0;
  std::uint64_t filled_ = 0;
  std::optional<codecs::Xxh3_128> state_;
};

}  // namespace weighbridge::convert

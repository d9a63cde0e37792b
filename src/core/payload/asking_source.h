// SPDX-License-Identifier: Apache-2.0
// A source that calls the caller's progress hook while it is read, so that walkers and codecs need not.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/progress.h"
#include "io/forwarding_source.h"

namespace weighbridge::core {

// Source and context must outlive it. Asks before the first read and after every kBetween bytes; throws Cancelled.
class AskingSource final : public io::ForwardingSource {
 public:
  AskingSource(const Source& of, const Context& context) : ForwardingSource(of), context_(context) {}

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    do {
      const auto piece = out.first(std::min(out.size(), kBetween));
      count(piece.size());
      of().read_at(offset, piece);
      offset += piece.size();
      out = out.subspan(piece.size());
    } while (!out.empty());
  }
  // As few calls as the bytes between two questions allow.
  void read(std::span<const ReadRange> ranges) const override {
    while (!ranges.empty()) {
      std::size_t n = 0, total = 0;
      for (; n < ranges.size() && ranges[n].out.size() <= kBetween - total; ++n) total += ranges[n].out.size();
      if (n == 0) {
        read_at(ranges[n].offset, ranges[n].out);
        ++n;
      } else {
        count(total);
        of().read(ranges.first(n));
      }
      ranges = ranges.subspan(n);
    }
  }

 private:
  static constexpr std::size_t kBetween = std::size_t{4} << 20;
  void count(std::size_t bytes) const {
    if (since_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed) >
        static_cast<std::int64_t>(bytes))
      return;
    since_.store(kBetween, std::memory_order_relaxed);
    check_cancelled(context_);
  }

  const Context& context_;
  mutable std::atomic<std::int64_t> since_{0};  // bytes until the next call of the hook
};

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Another source as if each read of it waited for a remote reply: counts the requests.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "io/forwarding_source.h"

namespace weighbridge::test {

class FarSource final : public io::InterposedSource {
 public:
  explicit FarSource(std::shared_ptr<const Source> of, std::uint64_t gap = std::uint64_t{1} << 20,
                     std::shared_ptr<const Place> beside = nullptr)
      : InterposedSource(std::move(of)), gap_(gap), beside_(std::move(beside)) {}

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ++requests, ++calls, bytes += out.size();
    of().read_at(offset, out);
    const std::lock_guard lock(mutex_);
    ranges_.emplace_back(offset, offset + out.size());
  }
  void read(std::span<const ReadRange> ranges) const override {
    InterposedSource::read(ranges);
    calls -= ranges.size() - 1;
  }
  ReadCost cost() const noexcept override { return {gap_}; }
  std::shared_ptr<const Place> place() const override { return beside_; }
  std::string_view path() const noexcept override { return {}; }

  // The bytes that more than one request has read.
  std::uint64_t read_again() const {
    const std::lock_guard lock(mutex_);
    std::sort(ranges_.begin(), ranges_.end());
    std::uint64_t again = 0, end = 0;
    for (const auto& [from, to] : ranges_) {
      if (from < end) again += std::min(end, to) - from;
      end = std::max(end, to);
    }
    return again;
  }

  mutable std::atomic<std::uint64_t> requests{0};  // ranges
  mutable std::atomic<std::uint64_t> calls{0};     // one for all ranges that are read together
  mutable std::atomic<std::uint64_t> bytes{0};

 private:
  const std::uint64_t gap_;
  const std::shared_ptr<const Place> beside_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace weighbridge::test

// SPDX-License-Identifier: Apache-2.0
// How much work the data of a file is worth.
#include "core/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.h"
#include "core/common_rules.h"
#include "core/encoding.h"
#include "core/findings.h"
#include "core/state.h"

namespace weighbridge::core {
namespace {

constexpr std::uint64_t kTimes = 16, kAtLeast = std::uint64_t{256} << 20;

std::uint64_t add_to(std::uint64_t a, std::uint64_t b) noexcept { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace

void Work::add(const Part& part, std::uint64_t bytes) {
  const PartRecord& record = Access::record(part);
  const auto extent = part.extent();
  // Many small frames take as long as their stored bytes.
  if (extent && is_coded(record.encoding)) bytes = std::max(bytes, extent->length);
  const auto cut = cut_of(part);
  if (cut) bytes = std::max(bytes, cut_work(*cut, part));
  wanted_ = add_to(wanted_, bytes);
  if (!extent) {
    computed_ = add_to(computed_, part.size());
    return;
  }
  const Range range{extent->source, extent->offset, extent->length, 0};
  if (is_coded(record.encoding)) {
    coded_.push_back({range, std::max(decoded_size(part), extent->length)});
  } else {
    raw_.push_back(range);
  }
}

std::uint64_t Work::distinct() const {
  std::uint64_t total = add_to(computed_, Extents(raw_).distinct_bytes());
  auto coded = coded_;
  std::ranges::sort(coded, {}, &Coded::range);
  std::uint64_t largest = 0, end = 0;  // of the ranges that share bytes
  for (std::size_t i = 0; i < coded.size(); ++i) {
    const Range& range = coded[i].range;
    if (i == 0 || range.source != coded[i - 1].range.source || range.offset >= end) {
      total = add_to(total, std::exchange(largest, 0));
      end = 0;
    }
    largest = std::max(largest, coded[i].size);
    end = std::max(end, range.end());
  }
  total = add_to(total, largest);
  return total;
}

std::uint64_t allowed_work(std::uint64_t distinct, std::uint64_t limit) noexcept {
  if (limit != 0) return limit;
  return std::max(kAtLeast, distinct > UINT64_MAX / kTimes ? UINT64_MAX : distinct * kTimes);
}

std::optional<Finding> Work::excess(const Limits& limits) const {
  if (wanted_ <= allowed_work(0, limits.work)) return std::nullopt;
  const std::uint64_t data = distinct(), allowed = allowed_work(data, limits.work);
  if (wanted_ <= allowed) return std::nullopt;
  return Findings::make(rules::kLimitWork, {.hint = base::limit_hint("work", std::to_string(wanted_))},
                        fmt::format("at most {} bytes", allowed), {},
                        fmt::format("{} bytes of work for {} bytes of tensor data", wanted_, data));
}

void Work::require(const Limits& limits) const {
  if (auto finding = excess(limits)) throw Error(*std::move(finding));
}

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// Bounds a job's reads by the tensor data on disk.
#include "core/payload/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/state.h"
#include "core/payload/content.h"
#include "core/payload/payload.h"
#include "core/reading/findings.h"
#include "core/reading/rules.h"

namespace weighbridge::core {
namespace {

// Ordinary models share parts a few times at most (tied embeddings). Small files may do more: 256 MiB take about a
// second.
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
  if (const auto width = info(record.dtype).bits / 8; !cut && extent && width > 0 && !part.strides().empty())
    bytes = base::checked_mul(bytes / width, strided_cost(part.shape(), part.strides(), width)).value_or(UINT64_MAX);
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

void Work::add_dense(const Tensor& tensor) {
  for (const Part& part : tensor.parts()) add(part);
  if (!is_sparse(tensor)) return;
  const auto count = base::element_count(tensor.shape());
  wanted_ = add_to(wanted_, count ? packed_size(tensor.dtype(), *count).value_or(UINT64_MAX) : UINT64_MAX);
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

void Work::require_output(std::uint64_t bytes, const Limits& limits) const {
  if (bytes <= allowed_work(0, limits.output) && wanted_ <= allowed_work(0, 0)) return;
  const std::uint64_t there = distinct(), allowed = allowed_work(there, limits.output);
  if (limits.output != 0 ? bytes <= allowed : wanted_ <= allowed) return;
  base::over_limit(
      "output",
      fmt::format("the output has {} bytes for {} bytes of tensor data, and the limit is {}", bytes, there, allowed),
      bytes);
}

namespace {

// Throws if the work is past both limits.
void require_either(const Work& work, Limits limits) {
  if (limits.output != 0) limits.work = std::max(limits.output, allowed_work(work.distinct(), limits.work));
  work.require(limits);
}

}  // namespace

void require_work(const Part& part, std::uint64_t bytes, const Limits& limits) {
  // Plain elements take no more work than their bytes.
  if (limits.work == 0 && part.strides().empty() && !cut_of(part)) return;
  Work work;
  work.add(part, bytes);
  require_either(work, limits);
}

void require_dense_work(const Tensor& tensor, const Limits& limits) {
  if (!is_sparse(tensor)) {
    if (tensor.layout() == Layout::dense) require_work(tensor.main(), tensor.main().size(), limits);
    return;  // the parts of blocks are read as such
  }
  Work work;
  work.add_dense(tensor);
  require_either(work, limits);
}

}  // namespace weighbridge::core

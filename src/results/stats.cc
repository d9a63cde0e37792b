// SPDX-License-Identifier: Apache-2.0
// statistics() and histogram(): stream a tensor's dense elements into codecs' accumulator and into intervals.
#include "weighbridge/stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "base/fail.h"
#include "codecs/stats.h"
#include "core/extents.h"
#include "core/progress.h"
#include "core/work.h"

namespace weighbridge {
namespace {

bool is_wide(DType dtype) { return dtype == DType::f64 || dtype == DType::complex128; }

// All real types below f64 fit f32, whose shortest decimal form is the familiar one.
Value value_of(const codecs::StatNumber& number, DType dtype) {
  if (const auto* u = std::get_if<std::uint64_t>(&number)) return Value::integer(*u);
  if (const auto* i = std::get_if<std::int64_t>(&number)) return Value::integer(*i);
  return Value::real(std::get<double>(number), is_wide(dtype) ? DType::f64 : DType::f32);
}

std::uint64_t elements_of(const Tensor& t) {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : t.shape()) product *= dim;  // no overflow: opening checked the size
  return product;
}

// The nearest double, as for the elements themselves.
double number_of(const Value& value) {
  if (const auto real = value.as_f64()) return *real;
  if (const auto whole = value.as_i64()) return static_cast<double>(*whole);
  return static_cast<double>(value.as_u64().value_or(0));
}

}  // namespace

Stats statistics(const Tensor& tensor, const Context& context) {
  const DType dtype = tensor.dtype();
  codecs::StatsAccumulator accumulator(dtype, elements_of(tensor));
  tensor.stream_dense(dtype, context, [&](std::span<const std::byte> piece) {
    accumulator.update(piece);
    return true;
  });
  const codecs::Statistics found = accumulator.finish();
  Stats stats{found.elements, found.zero, found.nan, found.infinite, {}, {}, found.mean};
  if (found.finite == 0) return stats;
  stats.min = value_of(found.min, dtype);
  stats.max = value_of(found.max, dtype);
  return stats;
}

namespace {

std::uint64_t bytes_of(const Tensor& tensor) {
  std::uint64_t bytes = 0;
  for (const Part& part : tensor.parts()) bytes += part.size();
  return bytes;
}

// For each of the tensors, the position of the first one with the same stored elements, which has the same statistics.
std::vector<std::size_t> first_equals(const Model& model, std::span<const std::uint32_t> tensors) {
  std::vector<std::size_t> first(tensors.size());
  std::iota(first.begin(), first.end(), std::size_t{0});
  std::vector<core::Range> ranges;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor tensor = model[tensors[i]];
    if (tensor.unsupported() || tensor.layout() != Layout::dense || tensor.part_count() != 1) continue;
    if (const auto extent = tensor.part(0).extent())
      ranges.push_back({extent->source, extent->offset, extent->length, static_cast<std::uint32_t>(i)});
  }
  const core::Range* before = nullptr;
  core::Extents(std::move(ranges)).walk([&](const core::Range& here, core::Meeting meeting, const core::Range*) {
    if (meeting == core::Meeting::alias) {
      // Of tensors that alternate between two types, all have one of these two before them.
      for (const std::size_t like : {first[before->item], std::size_t{before->item}})
        if (core::same_elements(model[tensors[like]].part(0), model[tensors[here.item]].part(0))) {
          first[here.item] = first[like];
          break;
        }
    }
    before = &here;
  });
  return first;
}

}  // namespace

std::vector<Stats> statistics(const Model& model, std::span<const std::uint32_t> tensors, const Context& context) {
  const std::vector<std::size_t> first = first_equals(model, tensors);
  core::Work work;
  std::uint64_t total = 0;
  std::vector<std::size_t> distinct;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor tensor = model[tensors[i]];
    if (first[i] != i || tensor.unsupported()) continue;
    distinct.push_back(i);
    for (const Part& part : tensor.parts()) work.add(part);
    total += bytes_of(tensor);
  }
  work.require(context.limits);
  std::vector<Stats> stats(tensors.size());
  core::Progress progress(context, total);
  core::executor_of(context).for_each(distinct.size(), [&](std::uint64_t at) {
    const std::size_t i = distinct[base::to_size(at)];
    const Tensor tensor = model[tensors[i]];
    const std::uint64_t most = bytes_of(tensor);
    std::uint64_t counted = 0;
    Context inner = progress.inner();
    inner.progress = [&](std::uint64_t now, std::uint64_t) {
      progress.add(std::min(now, most) - counted);
      counted = std::max(counted, std::min(now, most));
      return true;
    };
    stats[i] = statistics(tensor, inner);
    progress.add(most - counted);
  });
  for (std::size_t i = 0; i < tensors.size(); ++i) stats[i] = stats[first[i]];
  progress.finish();
  return stats;
}

Histogram histogram(const Tensor& tensor, std::uint32_t bins, const Context& context) {
  if (bins == 0 || bins > 65536) base::misuse("histogram", "a histogram has 1 to 65536 intervals");
  if (tensor.dtype() == DType::complex64 || tensor.dtype() == DType::complex128)
    base::misuse("histogram", "complex numbers have no order that a histogram could show");
  const Stats extremes = statistics(tensor, context);
  if (extremes.min.kind() == Value::Kind::null) return {};
  Histogram out{number_of(extremes.min), number_of(extremes.max), std::vector<std::uint64_t>(bins)};
  // Halves, because the distance of two finite numbers may overflow.
  const double half = out.to / 2 - out.from / 2;
  tensor.stream_dense(DType::f64, context, [&](std::span<const std::byte> piece) {
    for (; piece.size() >= sizeof(double); piece = piece.subspan(sizeof(double))) {
      double value = 0;
      std::memcpy(&value, piece.data(), sizeof value);
      if (!std::isfinite(value)) continue;
      const double place = half > 0 ? (value / 2 - out.from / 2) / half * bins : 0;
      ++out.counts[std::min(static_cast<std::uint32_t>(place), bins - 1)];
    }
    return true;
  });
  return out;
}

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// statistics() and histogram(): stream a tensor's dense elements into codecs' accumulator and into intervals.
#include "weighbridge/stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "base/fail.h"
#include "codecs/stats.h"

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

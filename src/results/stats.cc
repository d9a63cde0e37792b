// SPDX-License-Identifier: Apache-2.0
// statistics(): a tensor's dense stream into the accumulator of codecs.
#include "weighbridge/stats.h"

#include <variant>

#include "codecs/stats.h"

namespace weighbridge {
namespace {

bool is_wide(DType dtype) { return dtype == DType::f64 || dtype == DType::complex128; }

// Reals below f64 all fit f32, whose shortest decimal is the one that a person knows.
Value value_of(const codecs::StatNumber& number, DType dtype) {
  if (const auto* u = std::get_if<std::uint64_t>(&number)) return Value::integer(*u);
  if (const auto* i = std::get_if<std::int64_t>(&number)) return Value::integer(*i);
  return Value::real(std::get<double>(number), is_wide(dtype) ? DType::f64 : DType::f32);
}

std::uint64_t elements_of(const Tensor& t) {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : t.shape()) product *= dim;  // the tensor was opened, so that its size was checked
  return product;
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

}  // namespace weighbridge

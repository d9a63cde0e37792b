// SPDX-License-Identifier: Apache-2.0
// StatsAccumulator: blocks are widened, then summed by the kernels.
#include "codecs/stats.h"

#include <algorithm>
#include <cstring>

#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

// Numbers from kHuge on are summed as multiples of kUnit, because the sum of few of them overflows.
constexpr double kHuge = 0x1p960, kUnit = 0x1p64;

template <class T> void widen(StatNumber& low, StatNumber& high, bool first, T minimum, T maximum) noexcept {
  low = first ? minimum : std::min(std::get<T>(low), minimum);
  high = first ? maximum : std::max(std::get<T>(high), maximum);
}

}  // namespace

StatsAccumulator::StatsAccumulator(DType dtype, std::uint64_t elements) noexcept : dtype_(dtype), left_(elements) {
  if (dtype == DType::complex64) dtype_ = DType::f32;
  if (dtype == DType::complex128) dtype_ = DType::f64;
  const DTypeInfo& facts = info(dtype_);
  if (facts.bits >= 8) {
    unit_bytes_ = facts.bits / 8;
    left_ = ~std::uint64_t{0};
  } else if (facts.bits == 6) {
    unit_bytes_ = 3;
    unit_elements_ = 4;
  } else if (facts.bits == 4 || facts.bits == 2) {
    unit_elements_ = 8 / facts.bits;
  }
  if (facts.kind == DTypeKind::signed_integer)
    out_.min = out_.max = std::int64_t{0};
  else if (facts.kind == DTypeKind::real)
    out_.min = out_.max = 0.0;
}

void StatsAccumulator::update(std::span<const std::byte> piece) noexcept {
  if (dtype_ == DType::unknown) return;
  if (held_size_ > 0) {
    const std::size_t take = std::min<std::size_t>(unit_bytes_ - held_size_, piece.size());
    std::memcpy(held_ + held_size_, piece.data(), take);
    held_size_ += static_cast<std::uint32_t>(take);
    piece = piece.subspan(take);
    if (held_size_ < unit_bytes_) return;
    held_size_ = 0;
    block({held_, unit_bytes_}, unit_elements_);
  }
  const std::size_t maximum = kBlock / unit_elements_ * unit_bytes_;
  while (piece.size() >= unit_bytes_) {
    const std::size_t size = std::min(maximum, piece.size() / unit_bytes_ * unit_bytes_);
    block(piece.first(size), size / unit_bytes_ * unit_elements_);
    piece = piece.subspan(size);
  }
  if (piece.empty()) return;
  std::memcpy(held_, piece.data(), piece.size());
  held_size_ = static_cast<std::uint32_t>(piece.size());
}

void StatsAccumulator::zeros(std::uint64_t count) noexcept {
  if (count == 0 || dtype_ == DType::unknown) return;
  const bool first = out_.finite == 0;
  switch (info(dtype_).kind) {
    case DTypeKind::real: widen(out_.min, out_.max, first, 0.0, 0.0); break;
    case DTypeKind::signed_integer: widen(out_.min, out_.max, first, std::int64_t{0}, std::int64_t{0}); break;
    default: widen(out_.min, out_.max, first, std::uint64_t{0}, std::uint64_t{0}); break;
  }
  out_.zero += count;
  out_.finite += count;
  out_.elements += count;
}

Statistics StatsAccumulator::finish() noexcept {
  if (held_size_ > 0 && unit_elements_ > 1) block({held_, held_size_}, held_size_ * 8 / info(dtype_).bits);
  held_size_ = 0;
  if (out_.finite > 0) {
    const bool is_real = info(dtype_).kind == DTypeKind::real;
    const auto count = static_cast<double>(out_.finite);
    out_.mean = (is_real ? sum_.total() : static_cast<double>(whole_sum_)) / count;
    if (huge_.sum != 0 || huge_.rest != 0)  // rounding could put it just outside the range
      out_.mean =
          std::clamp(out_.mean + huge_.total() / count * kUnit, std::get<double>(out_.min), std::get<double>(out_.max));
  }
  return out_;
}

void StatsAccumulator::block(std::span<const std::byte> bytes, std::size_t count) noexcept {
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, left_));
  if (count == 0) return;
  left_ -= count;
  if (info(dtype_).kind == DTypeKind::real)
    reals(bytes.data(), count);
  else
    whole_numbers(bytes.data(), count);
  out_.elements += count;
}

void StatsAccumulator::whole_numbers(const std::byte* bytes, std::size_t count) noexcept {
  alignas(64) std::int64_t values[kBlock];
  load_i64(dtype_, bytes, values, count);
  const std::span all(values, count);
  const bool first = out_.finite == 0;
  std::uint64_t zero = 0;
  for (const std::int64_t v : all) zero += v == 0;
  out_.zero += zero;
  out_.finite += count;
  if (dtype_ == DType::u64) {
    std::uint64_t minimum = ~std::uint64_t{0}, maximum = 0;
    for (const std::int64_t v : all) {
      const auto value = static_cast<std::uint64_t>(v);
      minimum = std::min(minimum, value);
      maximum = std::max(maximum, value);
      whole_sum_ += value;
    }
    return widen(out_.min, out_.max, first, minimum, maximum);
  }
  std::int64_t minimum = values[0], maximum = values[0], sum = 0;
  for (const std::int64_t v : all) {
    minimum = std::min(minimum, v);
    maximum = std::max(maximum, v);
  }
  if (dtype_ == DType::i64)
    for (const std::int64_t v : all) whole_sum_ += v;
  else
    for (const std::int64_t v : all) sum += v;  // at most 2^11 times 2^32
  whole_sum_ += sum;
  if (info(dtype_).kind == DTypeKind::signed_integer)
    widen(out_.min, out_.max, first, minimum, maximum);
  else
    widen(out_.min, out_.max, first, static_cast<std::uint64_t>(minimum), static_cast<std::uint64_t>(maximum));
}

void StatsAccumulator::reals(const std::byte* bytes, std::size_t count) noexcept {
  RealSums sums;
  if (dtype_ == DType::f64) {
    alignas(64) double values[kBlock];
    load_f64(dtype_, bytes, values, count);
    kernels().sum_f64(values, count, sums);
    if (sums.finite > 0 && std::max(-sums.min, sums.max) >= kHuge) {
      for (std::size_t i = 0; i < count; ++i) values[i] /= kUnit;
      RealSums parts;
      kernels().sum_f64(values, count, parts);
      huge_.add(parts.sum);
      huge_.add(parts.rest);
      sums.sum = sums.rest = 0;
    }
  } else {
    alignas(64) float values[kBlock];
    load_f32(dtype_, bytes, values, count);
    kernels().sum_f32(values, count, sums);
  }
  if (sums.finite > 0) widen(out_.min, out_.max, out_.finite == 0, sums.min, sums.max);
  out_.finite += sums.finite;
  out_.nan += sums.nan;
  out_.infinite += sums.infinite;
  out_.zero += sums.zero;
  sum_.add(sums.sum);
  sum_.add(sums.rest);
}

}  // namespace weighbridge::codecs

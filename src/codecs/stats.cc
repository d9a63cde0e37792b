// SPDX-License-Identifier: Apache-2.0
// StatsAccumulator: blocks widened as in cast.cc, then summed by the kernels.
#include "codecs/stats.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/endian.h"
#include "codecs/bytes.h"
#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

constexpr std::size_t kBlock = 2048;

std::size_t index_of(DType dtype) noexcept { return static_cast<std::size_t>(dtype); }

template <class T> void widen(StatNumber& low, StatNumber& high, bool first, T least, T most) noexcept {
  low = first ? least : std::min(std::get<T>(low), least);
  high = first ? most : std::max(std::get<T>(high), most);
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
  } else if (facts.bits == 4) {
    unit_elements_ = 2;
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
  const std::size_t most = kBlock / unit_elements_ * unit_bytes_;
  while (piece.size() >= unit_bytes_) {
    const std::size_t size = std::min(most, piece.size() / unit_bytes_ * unit_bytes_);
    block(piece.first(size), size / unit_bytes_ * unit_elements_);
    piece = piece.subspan(size);
  }
  if (piece.empty()) return;
  std::memcpy(held_, piece.data(), piece.size());
  held_size_ = static_cast<std::uint32_t>(piece.size());
}

Statistics StatsAccumulator::finish() noexcept {
  if (held_size_ > 0 && unit_elements_ > 1) block({held_, held_size_}, held_size_ * 8 / info(dtype_).bits);
  held_size_ = 0;
  if (out_.finite > 0) {
    const double total = info(dtype_).kind == DTypeKind::real ? sum_ + rest_ : static_cast<double>(whole_sum_);
    out_.mean = total / static_cast<double>(out_.finite);
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
  kernels().to_i64[index_of(dtype_)](bytes, values, count);
  const std::span all(values, count);
  const bool first = out_.finite == 0;
  std::uint64_t zero = 0;
  for (const std::int64_t v : all) zero += v == 0;
  out_.zero += zero;
  out_.finite += count;
  if (dtype_ == DType::u64) {
    std::uint64_t least = ~std::uint64_t{0}, most = 0;
    for (const std::int64_t v : all) {
      const auto value = static_cast<std::uint64_t>(v);
      least = std::min(least, value);
      most = std::max(most, value);
      whole_sum_ += value;
    }
    return widen(out_.min, out_.max, first, least, most);
  }
  std::int64_t least = values[0], most = values[0], sum = 0;
  for (const std::int64_t v : all) {
    least = std::min(least, v);
    most = std::max(most, v);
  }
  if (dtype_ == DType::i64)
    for (const std::int64_t v : all) whole_sum_ += v;
  else
    for (const std::int64_t v : all) sum += v;  // at most 2^11 times 2^32
  whole_sum_ += sum;
  if (info(dtype_).kind == DTypeKind::signed_integer)
    widen(out_.min, out_.max, first, least, most);
  else
    widen(out_.min, out_.max, first, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most));
}

void StatsAccumulator::reals(const std::byte* bytes, std::size_t count) noexcept {
  RealSums sums;
  if (dtype_ == DType::f64) {
    alignas(64) double values[kBlock];
    for (std::size_t i = 0; i < count; ++i)
      values[i] = std::bit_cast<double>(base::load_le<std::uint64_t>(bytes + 8 * i));
    kernels().sum_f64(values, count, sums);
  } else {
    alignas(64) float values[kBlock];
    alignas(64) std::byte codes[kBlock];
    const std::uint32_t bits = info(dtype_).bits;
    if (bits < 8) {
      unpack_codes(bits, {bytes, (count * bits + 7) / 8}, {codes, count});
      bytes = codes;
    }
    kernels().to_f32[index_of(dtype_)](bytes, values, count);
    kernels().sum_f32(values, count, sums);
  }
  if (sums.finite > 0) widen(out_.min, out_.max, out_.finite == 0, sums.min, sums.max);
  out_.finite += sums.finite;
  out_.nan += sums.nan;
  out_.infinite += sums.infinite;
  out_.zero += sums.zero;
  add(sums.sum);
  add(sums.rest);
}

void StatsAccumulator::add(double value) noexcept {
  const double sum = sum_ + value, part = sum - sum_;
  rest_ += (sum_ - (sum - part)) + (value - part);
  sum_ = sum;
}

}  // namespace weighbridge::codecs

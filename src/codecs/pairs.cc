// SPDX-License-Identifier: Apache-2.0
// PairAccumulator: blocks are widened, then summed by the kernels. Those with numbers that are not finite, and 64-bit
// integers, take a slower way.
#include "codecs/pairs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

bool is_wide_integer(DType dtype) noexcept { return dtype == DType::i64 || dtype == DType::u64; }
bool is_narrow(DType dtype) noexcept {
  return info(dtype).kind == DTypeKind::real && info(dtype).bits <= 16 && dtype != DType::f8_e8m0;
}
bool fits_f32(DType dtype) noexcept { return info(dtype).kind == DTypeKind::real && info(dtype).bits <= 32; }

void widen(DType from, const std::byte* in, float* to, std::size_t n) noexcept { load_f32(from, in, to, n); }
void widen(DType from, const std::byte* in, double* to, std::size_t n) noexcept { load_f64(from, in, to, n); }

bool same_value(double x, double y) noexcept { return x == y || (std::isnan(x) && std::isnan(y)); }

// Adds one pair whose difference is known.
void add_pair(PairDifferences& out, double x, double y, double d, bool changed, Tolerance tolerance,
              std::uint64_t at) noexcept {
  out.changed += changed ? 1U : 0U;
  if (changed && out.first == PairDifferences::kNone) out.first = at;
  if (!std::isfinite(x) || !std::isfinite(y)) {
    out.beyond += changed ? 1U : 0U;
    if (changed) ++(std::isnan(x) || std::isnan(y) ? out.nans : out.infinite);
    return;
  }
  const double error = std::abs(d);
  out.beyond += changed && !(error <= tolerance.atol + tolerance.rtol * std::abs(y)) ? 1U : 0U;
  ++out.finite;
  out.xx.add(x * x);
  out.yy.add(y * y);
  out.dd.add(d * d);
  out.xy.add(x * y);
  if (x != 0) out.max_rel = std::max(out.max_rel, error / std::abs(x));
  if (error > out.max_abs) {
    out.max_abs = error;
    out.largest = at;
  }
}

// An element as an integer, if it is one; with the nearest double.
struct Number {
  double value = 0;
  Int128 whole = 0;
  bool is_whole = false;
};
Number number_of(DType dtype, double value, std::int64_t bits) noexcept {
  if (dtype == DType::u64) return {value, static_cast<Int128>(static_cast<std::uint64_t>(bits)), true};
  if (dtype == DType::i64) return {value, static_cast<Int128>(bits), true};
  if (std::abs(value) < 0x1p100 && std::trunc(value) == value) return {value, static_cast<Int128>(value), true};
  return {value, 0, false};
}

}  // namespace

void PairDifferences::add(const PairDifferences& later) noexcept {
  pairs += later.pairs;
  changed += later.changed;
  beyond += later.beyond;
  nans += later.nans;
  infinite += later.infinite;
  finite += later.finite;
  if (later.max_abs > max_abs) {
    max_abs = later.max_abs;
    largest = later.largest;
  }
  max_rel = std::max(max_rel, later.max_rel);
  for (const auto sum : {&PairDifferences::xx, &PairDifferences::yy, &PairDifferences::dd, &PairDifferences::xy}) {
    (this->*sum).add((later.*sum).sum);
    (this->*sum).rest += (later.*sum).rest;
  }
  if (first == kNone) first = later.first;
}

bool can_pair(DType x, DType y) noexcept {
  const DTypeKind one = info(x).kind, other = info(y).kind;
  if (one == DTypeKind::unknown || other == DTypeKind::unknown) return false;
  return (one == DTypeKind::complex) == (other == DTypeKind::complex);
}

PairAccumulator::PairAccumulator(DType x, DType y, Tolerance tolerance, std::uint64_t first) noexcept
    : x_(x), y_(y), tolerance_(tolerance), complex_(info(x).kind == DTypeKind::complex), at_(first) {
  const auto component = [](DType dtype) {
    return dtype == DType::complex64 ? DType::f32 : dtype == DType::complex128 ? DType::f64 : dtype;
  };
  x_ = component(x);
  y_ = component(y);
  is_narrow_ = is_narrow(x_) && is_narrow(y_) && tolerance == Tolerance{};
  if (complex_) at_ *= 2;
}

template <class Real> void PairAccumulator::one_by_one(const Real* x, const Real* y, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const auto one = static_cast<double>(x[i]), other = static_cast<double>(y[i]);
    add_pair(out_, one, other, other - one, !same_value(one, other), tolerance_, at_ + i);
  }
}

// Nothing has changed, and all four sums are known from one.
template <class Real> void PairAccumulator::same(const Real* both, std::size_t n) noexcept {
  double squares = 0;
  if constexpr (sizeof(Real) == 4)
    squares = kernels().squares_f32(both, n);
  else
    squares = kernels().squares_f64(both, n);
  if (!std::isfinite(squares)) {
    one_by_one(both, both, n);
    return;
  }
  out_.finite += n;
  out_.xx.add(squares);
  out_.yy.add(squares);
  out_.xy.add(squares);
}

template <class Real> void PairAccumulator::block(const Real* x, const Real* y, std::size_t n) noexcept {
  PairSums sums;
  if constexpr (sizeof(Real) == 4)
    kernels().pair_f32(x, y, n, {tolerance_.atol, tolerance_.rtol, out_.max_rel}, sums);
  else
    kernels().pair_f64(x, y, n, {tolerance_.atol, tolerance_.rtol, out_.max_rel}, sums);
  if (!std::isfinite(sums.xx) || !std::isfinite(sums.yy) || !std::isfinite(sums.dd)) {
    one_by_one(x, y, n);
    return;
  }
  take(sums, n);
  if (sums.changed == 0) return;
  find<double>(x, y, sums.max_abs);
}

void PairAccumulator::take(const PairSums& sums, std::size_t n) noexcept {
  out_.finite += n;
  out_.xx.add(sums.xx);
  out_.yy.add(sums.yy);
  out_.dd.add(sums.dd);
  out_.xy.add(sums.xy);
  out_.changed += sums.changed;
  out_.beyond += sums.beyond;
  out_.max_rel = std::max(out_.max_rel, sums.max_rel);
}

// `Difference` is the type in which the kernel subtracted.
template <class Difference, class Real>
void PairAccumulator::find(const Real* x, const Real* y, double max_abs) noexcept {
  if (out_.first == PairDifferences::kNone) {
    std::size_t i = 0;
    while (x[i] == y[i]) ++i;
    out_.first = at_ + i;
  }
  if (max_abs > out_.max_abs) {
    std::size_t i = 0;
    const auto maximum = static_cast<Difference>(max_abs);
    while (std::abs(static_cast<Difference>(y[i]) - static_cast<Difference>(x[i])) != maximum) ++i;
    out_.max_abs = max_abs;
    out_.largest = at_ + i;
  }
}

// Whether f32 was enough: nothing overflowed, any underflow does not matter, and the cosine can be computed from the
// other sums.
bool PairAccumulator::is_enough(const PairSums& sums) noexcept {
  constexpr double kSmallestSum = 0x1p-80;
  const bool finite = std::isfinite(sums.xx) && std::isfinite(sums.yy) && std::isfinite(sums.dd);
  return finite && sums.xx >= kSmallestSum && sums.yy >= kSmallestSum &&
         (sums.dd >= kSmallestSum || sums.changed == 0) && sums.xx <= 4 * sums.yy && sums.yy <= 4 * sums.xx;
}

// Returns false if the block has to be added another way. The blocks after it are then added that way too: their
// numbers are of the same sizes, and subnormal ones are slow in f32.
bool PairAccumulator::narrow(const std::byte* x, const std::byte* y, std::size_t n) noexcept {
  alignas(64) float xs[kBlock], ys[kBlock];
  PairSums sums;
  const bool stored = std::endian::native == std::endian::little && x_ == DType::bf16 && y_ == DType::bf16;
  const auto load = [&] {
    widen(x_, x, xs, n);
    widen(y_, y, ys, n);
  };
  if (stored) {
    kernels().pair_bf16(x, y, n, out_.max_rel, sums);
  } else {
    load();
    kernels().pair_narrow(xs, ys, n, out_.max_rel, sums);
  }
  is_narrow_ = is_enough(sums) && sums.max_rel < 0x1p120;  // f32 holds the ratio
  if (!is_narrow_) return false;
  take(sums, n);
  if (sums.changed == 0 || (out_.first != PairDifferences::kNone && !(sums.max_abs > out_.max_abs))) return true;
  if (stored) load();
  find<float>(xs, ys, sums.max_abs);
  return true;
}

template <class Real>
void PairAccumulator::widened(const std::byte* x, const std::byte* y, std::size_t n, bool equal) noexcept {
  alignas(64) Real xs[kBlock], ys[kBlock];
  const auto load = [n](DType from, const std::byte* in, Real* room) -> const Real* {
    const bool stored = std::endian::native == std::endian::little && info(from).kind == DTypeKind::real &&
                        info(from).bits == 8 * sizeof(Real) &&
                        reinterpret_cast<std::uintptr_t>(in) % alignof(Real) == 0;
    if (stored) return reinterpret_cast<const Real*>(in);
    widen(from, in, room, n);
    return room;
  };
  const Real* const one = load(x_, x, xs);
  if (equal) return same(one, n);
  block(one, load(y_, y, ys), n);
}

void PairAccumulator::exact(const std::byte* x, const std::byte* y, std::size_t n) noexcept {
  alignas(64) double xs[kBlock], ys[kBlock];
  alignas(64) std::int64_t x_bits[kBlock] = {}, y_bits[kBlock] = {};
  load_f64(x_, x, xs, n);
  load_f64(y_, y, ys, n);
  if (is_wide_integer(x_)) load_i64(x_, x, x_bits, n);
  if (is_wide_integer(y_)) load_i64(y_, y, y_bits, n);
  for (std::size_t i = 0; i < n; ++i) {
    const Number one = number_of(x_, xs[i], x_bits[i]), other = number_of(y_, ys[i], y_bits[i]);
    const bool both = one.is_whole && other.is_whole;
    const double d = both ? static_cast<double>(other.whole - one.whole) : other.value - one.value;
    add_pair(out_, one.value, other.value, d, both ? one.whole != other.whole : true, tolerance_, at_ + i);
  }
}

void PairAccumulator::update(std::span<const std::byte> x, std::span<const std::byte> y,
                             std::uint64_t elements) noexcept {
  const std::byte *from_x = x.data(), *from_y = y.data();
  std::uint64_t left = complex_ ? 2 * elements : elements;
  while (left > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, kBlock));
    // Most of a tensor that was trained for a while has changed, and most of one that was edited has not.
    const bool equal = x_ == y_ && (from_x == from_y || std::memcmp(from_x, from_y, (n * info(x_).bits + 7) / 8) == 0);
    if (is_wide_integer(x_) || is_wide_integer(y_)) {
      exact(from_x, from_y, n);
    } else if (fits_f32(x_) && fits_f32(y_)) {
      if (equal || !is_narrow_ || !narrow(from_x, from_y, n)) widened<float>(from_x, from_y, n, equal);
    } else {
      widened<double>(from_x, from_y, n, equal);
    }
    out_.pairs += n;
    at_ += n;
    left -= n;
    from_x += n * info(x_).bits / 8;
    from_y += n * info(y_).bits / 8;
  }
}

void PairAccumulator::equal(std::span<const std::byte> both, std::uint64_t elements) noexcept {
  update(both, both, elements);
}

}  // namespace weighbridge::codecs

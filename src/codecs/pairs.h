// SPDX-License-Identifier: Apache-2.0
// How the elements of one tensor differ from those of another, in one pass over both, in constant memory. Numbers are
// computed in f64, in an order that depends on the elements alone; where both types have at most 16 bits and there is
// no tolerance, differences in f32, and sums of squares in f32 by sixteen terms: see Kernels::pair_narrow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/stats.h"
#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

struct PairSums;

// An element of the second tensor, y, counts as the first one's, x, if |y - x| <= atol + rtol * |y|.
struct Tolerance {
  double atol = 0, rtol = 0;
  bool operator==(const Tolerance&) const = default;
};

struct PairDifferences {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t pairs = 0;        // a complex element counts as two: its parts
  std::uint64_t changed = 0;      // by value: zeros of both signs are equal, NaNs are equal, infinities of one sign are
  std::uint64_t beyond = 0;       // changed by more than the tolerance
  std::uint64_t nans = 0;         // one of the two is NaN
  std::uint64_t infinite = 0;     // one of the two is infinite, or both are and of different signs; none is NaN
  std::uint64_t finite = 0;       // both are finite: the members below cover these
  double max_abs = 0;             // of the differences d = y - x
  double max_rel = 0;             // of |d| / |x|, where x is not zero
  LongSum xx, yy, dd, xy;         // sums of squares and products
  std::uint64_t first = kNone;    // the first pair that changed
  std::uint64_t largest = kNone;  // the first pair with the largest |d|, if that is not 0
  void add(const PairDifferences& later) noexcept;  // of pairs after these
};

// Whether elements of these types can be compared: both are numbers, of one or of two components.
bool can_pair(DType x, DType y) noexcept;

// Feed pieces with the same number of elements, in order. A piece has whole bytes of both types. Elements of 64-bit
// integers are compared exactly.
class PairAccumulator {
 public:
  PairAccumulator(DType x, DType y, Tolerance tolerance, std::uint64_t first = 0) noexcept;
  // `elements` packed little-endian elements of each.
  void update(std::span<const std::byte> x, std::span<const std::byte> y, std::uint64_t elements) noexcept;
  // The same for elements that are known to be equal: only their squares count.
  void equal(std::span<const std::byte> both, std::uint64_t elements) noexcept;
  const PairDifferences& result() const noexcept { return out_; }

 private:
  template <class Real> void block(const Real* x, const Real* y, std::size_t n) noexcept;
  // The same for elements of which all bits are equal.
  template <class Real> void same(const Real* both, std::size_t n) noexcept;
  void take(const PairSums& sums, std::size_t n) noexcept;
  template <class Difference, class Real> void find(const Real* x, const Real* y, double max_abs) noexcept;
  template <class Real> void widened(const std::byte* x, const std::byte* y, std::size_t n, bool equal) noexcept;
  bool narrow(const std::byte* x, const std::byte* y, std::size_t n) noexcept;
  static bool is_enough(const PairSums& sums) noexcept;
  template <class Real> void one_by_one(const Real* x, const Real* y, std::size_t n) noexcept;
  void exact(const std::byte* x, const std::byte* y, std::size_t n) noexcept;

  DType x_, y_;  // of a component
  Tolerance tolerance_;
  bool complex_ = false, is_narrow_ = false;
  std::uint64_t at_;  // the first pair of the next block
  PairDifferences out_;
};

}  // namespace weighbridge::codecs

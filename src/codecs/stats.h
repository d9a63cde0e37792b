// SPDX-License-Identifier: Apache-2.0
// Statistics of a tensor's elements in one pass over its logical bytes, in pieces, in constant memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "weighbridge/dtype.h"

namespace weighbridge::codecs {

// A number in a type that fits its dtype: u64 for bool and unsigned, i64 for signed integers, double for the rest.
using StatNumber = std::variant<std::uint64_t, std::int64_t, double>;

struct Statistics {
  std::uint64_t elements = 0;  // counted; a complex element counts as two: its parts
  std::uint64_t nan = 0, infinite = 0, zero = 0;
  std::uint64_t finite = 0;  // elements that are neither NaN nor infinite; min, max and mean cover these
  StatNumber min, max;       // undefined if finite is 0
  double mean = 0;           // exact sum for integers, compensated for reals, then one division; 0 if finite is 0
};

__extension__ using Int128 = __int128;

// A sum and its rounding error.
struct LongSum {
  double sum = 0, rest = 0;
  void add(double value) noexcept {  // Knuth's two-sum
    const double next = sum + value, part = next - sum;
    rest += (sum - (next - part)) + (value - part);
    sum = next;
  }
  // Beyond the range of f64, the rounding error is NaN.
  double total() const noexcept { return rest - rest == 0 ? sum + rest : sum; }
};

// Feed pieces of any length, in order; then finish(). Bytes of an incomplete last element are ignored. `elements` is
// used only for packed dtypes (f6, f4), to tell spare bits from elements.
class StatsAccumulator {
 public:
  explicit StatsAccumulator(DType dtype, std::uint64_t elements = ~std::uint64_t{0}) noexcept;
  void update(std::span<const std::byte> piece) noexcept;
  // Counts this many zeros, as update() would.
  void zeros(std::uint64_t count) noexcept;
  Statistics finish() noexcept;

 private:
  void block(std::span<const std::byte> bytes, std::size_t count) noexcept;
  void whole_numbers(const std::byte* bytes, std::size_t count) noexcept;
  void reals(const std::byte* bytes, std::size_t count) noexcept;

  DType dtype_;                   // of a component, for complex
  std::uint32_t unit_bytes_ = 1;  // bytes that hold whole elements
  std::uint32_t unit_elements_ = 1;
  std::uint64_t left_;  // elements still to come
  std::byte held_[8] = {};
  std::uint32_t held_size_ = 0;
  Statistics out_;
  LongSum sum_, huge_;  // huge: of blocks with numbers whose sum could overflow, divided
  Int128 whole_sum_ = 0;
};

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Range reduction and series, with plain additions and multiplications.
#include "runtime/llama/numbers.h"

#include <cmath>

namespace weighbridge::llama {
namespace {

// ln 2 and pi / 2 in parts: the product of any part but the last with an integer below 2^21 (2^33) is exact.
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33, kLog2e = 1.4426950408889634;
constexpr double kHalfPiHigh = 0x1.921fap+0, kHalfPiMiddle = 0x1.54442p-20, kHalfPiLow = 0x1.a308d313198a3p-41,
                 kTwoOverPi = 0.63661977236758134;

}  // namespace

double exponential(double x) noexcept {
  if (x < -700) return 0;
  const double n = std::floor(x * kLog2e + 0.5), r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1;
  for (int i = 17; i > 0; --i) sum = 1 + sum * r / i;  // |r| <= 0.35: the next term is below 2^-79
  return std::ldexp(sum, static_cast<int>(n));
}

double logarithm(double x) noexcept {
  int power = 0;
  double m = std::frexp(x, &power);  // [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --power;
  }
  // log m = 2 artanh s, |s| <= 0.172
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int i = 23; i > 0; i -= 2) sum = sum * square + 1.0 / i;
  return power * kLn2High + (2 * s * sum + power * kLn2Low);
}

Turn turn(double angle) noexcept {
  const double n = std::floor(angle * kTwoOverPi + 0.5);
  const double r = ((angle - n * kHalfPiHigh) - n * kHalfPiMiddle) - n * kHalfPiLow, square = r * r;  // |r| <= pi / 4
  double sine = 1, cosine = 1;
  for (int i = 20; i > 0; i -= 2) {
    sine = 1 - sine * square / (i * (i + 1));
    cosine = 1 - cosine * square / (i * (i - 1));
  }
  sine *= r;
  switch (static_cast<unsigned long long>(n) % 4) {
    case 0: return {cosine, sine};
    case 1: return {-sine, cosine};
    case 2: return {-cosine, -sine};
    default: return {sine, -cosine};
  }
}

}  // namespace weighbridge::llama

// SPDX-License-Identifier: Apache-2.0
// exp, log, sine and cosine in f64 with the same bits on every machine; the C library picks its instructions by
// processor. Each is within a few units in the last place, far finer than the f32 computed from it.
#pragma once

namespace weighbridge::llama {

double exponential(double x) noexcept;  // x from -700 to 700; below that the result is 0
double logarithm(double x) noexcept;    // x positive, normal, finite
struct Turn {
  double cosine, sine;
};
Turn turn(double angle) noexcept;  // radians, 0 to 2^32

}  // namespace weighbridge::llama

// SPDX-License-Identifier: Apache-2.0
// exp, log, sine and cosine in f64, the same bits on every machine: the C library's choose their instructions by the
// processor. Each is within a few units in the last place, which is far finer than the f32 that comes of it.
#pragma once

namespace weighbridge::llama {

double exponential(double x) noexcept;  // x from -700 to 700; 0 below
double logarithm(double x) noexcept;    // x positive, normal, finite
struct Turn {
  double cosine, sine;
};
Turn turn(double angle) noexcept;  // radians, 0 to 2^32

}  // namespace weighbridge::llama

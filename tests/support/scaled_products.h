// SPDX-License-Identifier: Apache-2.0
// For tests of products whose rows are brought to a scale before they are rounded: the scalar twin that their bits are
// compared with.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runtime/kernels/kernels.h"
#include "support/kernel_numbers.h"

namespace weighbridge::kernels::testing {

struct Shape {
  std::size_t m, n, k;
};
inline std::string name(const Shape& s) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
}

inline constexpr Shape kScaledShapes[] = {{1, 1, 1},     {1, 16, 3},   {2, 17, 16},    {3, 33, 33},   {4, 49, 63},
                                          {5, 96, 64},   {6, 144, 65}, {7, 31, 130},   {8, 384, 48},  {9, 97, 200},
                                          {16, 64, 195}, {23, 50, 18}, {19, 200, 384}, {129, 50, 97}, {1, 48, 400}};

struct Matrices {
  std::vector<float> a, w, bias;
};
inline Matrices matrices(const Shape& s) {
  Matrices out{numbers(s.m * s.k, 1), numbers(s.n * s.k, 2), numbers(s.n, 3)};
  out.bias.resize(round_up(s.n, kLanes));
  return out;
}

struct Scaled {
  std::vector<double> values;
  float scale;
};
template <class Round> Scaled scaled(const float* x, std::size_t n, Round round) {
  float maximum = 0;
  for (std::size_t i = 0; i < n; ++i) maximum = std::max(maximum, std::fabs(x[i]));
  int exponent = 0;
  std::frexp(maximum, &exponent);
  const int power = maximum < std::numeric_limits<float>::min() ? 126 : std::min(4 - exponent, 126);
  Scaled out{{}, std::ldexp(1.0F, -power)};
  for (std::size_t i = 0; i < n; ++i) out.values.push_back(round(std::ldexp(double{x[i]}, power)));
  return out;
}

// The product by sum(row, column), the sum of an element in the order that is tested.
template <class Round, class Sum> std::vector<float> twin(const Matrices& in, const Shape& s, Round round, Sum sum) {
  std::vector<float> out(s.m * s.n);
  std::vector<Scaled> columns;
  for (std::size_t j = 0; j < s.n; ++j) columns.push_back(scaled(in.w.data() + j * s.k, s.k, round));
  for (std::size_t i = 0; i < s.m; ++i) {
    const Scaled row = scaled(in.a.data() + i * s.k, s.k, round);
    for (std::size_t j = 0; j < s.n; ++j)
      out[i * s.n + j] = std::fma(sum(row.values, columns[j].values), columns[j].scale * row.scale, in.bias[j]);
  }
  return out;
}

// The activation of the f32 kernels: a product with a matrix of one changes nothing else.
inline std::vector<float> activated(const std::vector<float>& x, Activation activation) {
  const std::vector<float> one(kLanes, 1.0F), nothing(kLanes);
  std::vector<float> out(x.size());
  all_kernels()[0]->product_f32(
      {{1, 1, nothing.data(), activation, nullptr, 0, out.data(), 1}, x.data(), 1, one.data()}, {0, x.size(), 0, 1});
  return out;
}

}  // namespace weighbridge::kernels::testing

// SPDX-License-Identifier: Apache-2.0
// Poolings over the kernels, and the rare ones in double, whose products of a float and a small integer are exact.
#include "runtime/embed/encoder.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/kernels.h"

namespace weighbridge::bert {
namespace {

// A token's weight is its place in the text, from 1, also if those before it are left out.
void weighted_mean(const float* rows, std::size_t length, std::size_t apart, std::size_t width, float* out) {
  std::vector<double> sum(width);
  double weights = 0;
  for (std::size_t row = apart; row < length; ++row) {
    const auto weight = static_cast<double>(row + 1);
    weights += weight;
    for (std::size_t k = 0; k < width; ++k) sum[k] += static_cast<double>(rows[row * width + k]) * weight;
  }
  for (std::size_t k = 0; k < width; ++k) out[k] = static_cast<float>(sum[k] / weights);
}

}  // namespace

void pool(Pooling pooling, const float* rows, std::size_t length, std::size_t apart, std::size_t width, float* out) {
  const kernels::Kernels& set = kernels::kernels();
  const float* const pooled = rows + apart * width;
  const std::size_t count = length - apart;
  switch (pooling) {
    case Pooling::mean: return set.mean(pooled, count, width, out);
    case Pooling::max: return set.max(pooled, count, width, out);
    case Pooling::cls: std::copy_n(pooled, width, out); return;
    case Pooling::lasttoken: std::copy_n(rows + (length - 1) * width, width, out); return;
    case Pooling::weightedmean: return weighted_mean(rows, length, apart, width, out);
    case Pooling::mean_sqrt_len: {
      set.mean(pooled, count, width, out);
      const auto root = static_cast<float>(std::sqrt(static_cast<double>(count)));
      std::for_each_n(out, width, [&](float& x) { x *= root; });
      return;
    }
  }
}

void add_weighted(const float* x, std::size_t n, float weight, bool first, float* sum) {
  for (std::size_t i = 0; i < n; ++i) {
    const double product = static_cast<double>(x[i]) * static_cast<double>(weight);  // exact
    sum[i] = static_cast<float>(first ? product : product + static_cast<double>(sum[i]));
  }
}

}  // namespace weighbridge::bert

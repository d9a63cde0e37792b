// SPDX-License-Identifier: Apache-2.0
// Which set of kernels this processor runs, and the packing of quantised weights, which is the same for all.
#include "runtime/kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cmath>

namespace weighbridge::kernels {
namespace {

#if defined(__x86_64__)
// Conversions of halves, which clang 16 has no name for in __builtin_cpu_supports().
bool has_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

struct Choice {
  const Kernels* sets[3] = {plain_kernels(), nullptr, nullptr};
  std::size_t count = 1;

  Choice() noexcept {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (avx2) sets[count++] = avx2_kernels();
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
      sets[count++] = avx512_kernels();
#endif
  }
};

const Choice& choice() noexcept {
  static const Choice made;
  return made;
}

}  // namespace

const Kernels& kernels() noexcept { return *choice().sets[choice().count - 1]; }
std::span<const Kernels* const> all_kernels() noexcept { return {choice().sets, choice().count}; }

void pack_i8(const float* w, std::size_t n, std::size_t k, std::int8_t* out, float* scale, std::int32_t* sum) {
  const std::size_t depth = int8_depth(k);
  for (std::size_t row = 0; row < round_up(n, kLanes); ++row) {
    const std::size_t panel = row / kPanel, width = panel_width(n, panel);
    std::int8_t* to = out + panel * kPanel * depth + 4 * (row % kPanel);
    const float* from = w + row * k;
    float most = 0;
    if (row < n)
      for (std::size_t p = 0; p < k; ++p) most = std::max(most, std::fabs(from[p]));
    const float step = most > 0 ? most / 127.0F : 1.0F, inverse = 1.0F / step;
    std::int32_t total = 0;
    for (std::size_t p = 0; p < depth; ++p) {
      // Adding 1.5 * 2^23 rounds to the nearest even integer.
      const float code = row < n && p < k ? (from[p] * inverse + 12582912.0F) - 12582912.0F : 0.0F;
      const auto byte = static_cast<std::int8_t>(std::clamp(code, -127.0F, 127.0F));
      to[p / 4 * 4 * width + p % 4] = byte;
      total += byte;
    }
    scale[row] = step;
    sum[row] = total;
  }
}

}  // namespace weighbridge::kernels

// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of kernels: input numbers, and the comparison of results.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace weighbridge::kernels::testing {

// Evenly spread between -size and size; the same for the same seed.
inline std::vector<float> numbers(std::size_t count, std::uint64_t seed, float size = 2.0F) {
  std::vector<float> out(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : out) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32)) / 2147483648.0F * size;
  }
  return out;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace weighbridge::kernels::testing

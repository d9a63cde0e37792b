// SPDX-License-Identifier: Apache-2.0
// Random numbers and bytes for tests: the same ones for the same seed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace weighbridge::test {

using Random = std::mt19937_64;

inline std::size_t pick(Random& random, std::size_t below) { return static_cast<std::size_t>(random() % below); }

inline std::vector<std::byte> noise(std::size_t size, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(size);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

// Compressible bytes of any length: words of a small vocabulary.
inline std::vector<std::byte> words(std::size_t size, std::uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = i % 5 == 4 || i < 16 ? static_cast<std::byte>(random())
                                  : out[i - 1 - (random() % std::min<std::size_t>(i, 12))];
  return out;
}

}  // namespace weighbridge::test

// SPDX-License-Identifier: Apache-2.0
// Every instruction set gives the bits of the definition, whatever the sizes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "codecs/kernels.h"

namespace weighbridge::codecs {
namespace {

TEST(LowRank, IsTheSumInAscendingOrderInEveryInstructionSet) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> number(-2, 2);
  const auto numbers = [&](std::size_t n) {
    std::vector<double> out(n);
    for (double& each : out) each = number(random);
    return out;
  };
  for (const std::size_t rows : {1U, 3U, 4U, 9U})
    for (const std::size_t columns : {1U, 7U, 8U, 17U, 64U})
      for (const std::size_t rank : {1U, 2U, 5U, 16U}) {
        const std::vector<double> left = numbers(rows * (rank + 1)), right = numbers(rank * (columns + 2)),
                                  before = numbers(rows * (columns + 3));
        std::vector<double> wanted = before;
        for (std::size_t i = 0; i < rows; ++i)
          for (std::size_t c = 0; c < columns; ++c) {
            volatile double sum = 0;
            for (std::size_t k = 0; k < rank; ++k) {
              const volatile double product = left[i * (rank + 1) + k] * right[k * (columns + 2) + c];
              sum = sum + product;
            }
            const volatile double scaled = 0.75 * sum;
            wanted[i * (columns + 3) + c] += scaled;
          }
        for (const Kernels* const set : all_kernels()) {
          std::vector<double> found = before;
          set->add_low_rank({.left = left.data(),
                             .right = right.data(),
                             .values = found.data(),
                             .left_stride = rank + 1,
                             .right_stride = columns + 2,
                             .stride = columns + 3,
                             .rows = rows,
                             .columns = columns,
                             .rank = rank,
                             .scale = 0.75});
          ASSERT_EQ(std::memcmp(found.data(), wanted.data(), found.size() * sizeof(double)), 0)
              << set->name << ", " << rows << " x " << columns << ", rank " << rank;
        }
      }
}

}  // namespace
}  // namespace weighbridge::codecs

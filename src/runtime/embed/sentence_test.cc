// SPDX-License-Identifier: Apache-2.0
// Poolings beside their definitions, over the tokens after a prompt.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/embed/encoder.h"

namespace weighbridge::bert {
namespace {

constexpr std::size_t kWidth = 3;
const std::vector<float> kRows = {1, 2, 3, -4, 5, 6, 7, -8, 9, 10, 11, -12};  // four tokens

std::vector<float> pooled(Pooling pooling, std::size_t apart) {
  std::vector<float> out(kWidth);
  pool(pooling, kRows.data(), kRows.size() / kWidth, apart, kWidth, out.data());
  return out;
}

TEST(Pool, EachKindIsItsDefinition) {
  EXPECT_EQ(pooled(Pooling::cls, 0), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(pooled(Pooling::lasttoken, 0), (std::vector<float>{10, 11, -12}));
  EXPECT_EQ(pooled(Pooling::max, 0), (std::vector<float>{10, 11, 9}));
  EXPECT_EQ(pooled(Pooling::mean, 0), (std::vector<float>{3.5F, 2.5F, 1.5F}));
  EXPECT_EQ(pooled(Pooling::mean_sqrt_len, 0), (std::vector<float>{7, 5, 3}));
  EXPECT_EQ(pooled(Pooling::weightedmean, 0), (std::vector<float>{5.4F, 3.2F, -0.6F}));
}

TEST(Pool, ThePromptIsLeftOutAndTheWeightsOfPlacesStay) {
  EXPECT_EQ(pooled(Pooling::cls, 2), (std::vector<float>{7, -8, 9}));
  EXPECT_EQ(pooled(Pooling::max, 2), (std::vector<float>{10, 11, 9}));
  EXPECT_EQ(pooled(Pooling::mean, 2), (std::vector<float>{8.5F, 1.5F, -1.5F}));
  EXPECT_EQ(pooled(Pooling::weightedmean, 2), (std::vector<float>{61 / 7.0F, 20 / 7.0F, -3}));
}

TEST(Pool, LayersAddUp) {
  std::vector<float> sum(2);
  const std::vector<float> x = {1, -2};
  add_weighted(x.data(), 2, 0.25F, true, sum.data());
  add_weighted(x.data(), 2, 0.5F, false, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{0.75F, -1.5F}));
}

}  // namespace
}  // namespace weighbridge::bert

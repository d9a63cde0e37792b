// SPDX-License-Identifier: Apache-2.0
// Numbers and required names, without files.
#include <gtest/gtest.h>

#include <set>

#include "formats/embd/architecture.h"
#include "support/thrown.h"

namespace weighbridge::embd {
namespace {

TEST(EmbdMetadata, NumbersAreDigitsAboveZero) {
  EXPECT_EQ(positive_integer("384"), 384U);
  EXPECT_EQ(positive_integer("0384"), 384U);
  EXPECT_EQ(positive_integer("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "0", "-1", "+1", " 1", "1 ", "1.0", "1e2", "0x10", "18446744073709551616", "six"})
    EXPECT_FALSE(positive_integer(bad)) << bad;
}

TEST(EmbdArchitecture, AllMiniLmHas101RequiredTensorsAndAPooler) {
  const Numbers numbers{384, 30522, 6, 12, 384, 1536, 512};
  std::set<std::string> names;
  std::uint64_t required = 0, elements = 0;
  for_each_expected(numbers, [&](const Expected& expected) {
    names.emplace(expected.name);
    if (!expected.required) return;
    ++required;
    std::uint64_t count = 1;
    for (const std::uint64_t dim : expected.shape) count *= dim;
    elements += count;
  });
  EXPECT_EQ(names.size(), 103U);
  EXPECT_EQ(required, 101U);
  // Reading E8's figures: word, position and segment embeddings, their norm, six layers.
  EXPECT_EQ(elements * 4, 46'881'792U + 786'432U + 3'072U + 3'072U + 42'587'136U);
  EXPECT_TRUE(names.contains("encoder.layer.5.attention.output.LayerNorm.bias"));
}

TEST(EmbdArchitecture, LayersAreComparedWithTheTensorsFirst) {
  Numbers numbers;
  numbers.num_layers = 6;
  EXPECT_TRUE(layers_fit(numbers, 101));
  EXPECT_FALSE(layers_fit(numbers, 100));
  numbers.num_layers = UINT64_MAX;
  EXPECT_FALSE(layers_fit(numbers, UINT64_MAX));
  numbers.num_layers = 1;
  EXPECT_FALSE(layers_fit(numbers, 4));
}

}  // namespace
}  // namespace weighbridge::embd

// SPDX-License-Identifier: Apache-2.0
// Times, numbers and required names, away from files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "formats/embd/architecture.h"
#include "formats/embd/timestamp.h"
#include "support/thrown.h"

namespace weighbridge::embd {
namespace {

TEST(EmbdTime, KnowsIso8601) {
  for (const char* good :
       {"2025-01-16T12:00:00Z", "2025-01-16", "2024-02-29T23:59:60Z", "2025-01-16T12:00", "2025-01-16T12:00:00.125Z",
        "2025-01-16T12:00:00+01:00", "2025-01-16T12:00:00-0130", "2025-01-16T12:00:00+01", "0001-01-01T00:00:00"})
    EXPECT_TRUE(is_iso8601(good)) << good;
  for (const char* bad : {"", "2025", "2025-1-16", "2025-13-01", "2025-02-29", "2025-01-00", "2025-01-16 12:00:00",
                          "2025-01-16T", "2025-01-16T12", "2025-01-16T12:60", "2025-01-16T12:00:61",
                          "2025-01-16T12:00:00.Z", "2025-01-16T12:00:00ZZ", "2025-01-16T12:00:00+1",
                          "2025-01-16T12:00:00+01:", "2025-01-16T12:00:00+", "+2025-01-16", "2025-01-16T12:00:00Z "})
    EXPECT_FALSE(is_iso8601(bad)) << bad;
}

TEST(EmbdTime, SpellsSeconds) {
  EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time(1'737'028'800), "2025-01-16T12:00:00Z");
  EXPECT_EQ(utc_time(951'827'696), "2000-02-29T12:34:56Z");
  EXPECT_EQ(utc_time(253'402'300'799), "9999-12-31T23:59:59Z");
  EXPECT_TRUE(is_iso8601(utc_time(1'234'567'890)));
}

TEST(EmbdTime, TakesSourceDateEpoch) {
  const char* const before = std::getenv("SOURCE_DATE_EPOCH");
  const std::string kept = before ? before : "";
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_EQ(default_created_at(), "1970-01-01T00:00:00Z");
  setenv("SOURCE_DATE_EPOCH", "1737028800", 1);
  EXPECT_EQ(default_created_at(), "2025-01-16T12:00:00Z");
  for (const char* bad : {"now", "-1", "1737028800 ", "253402300800"}) {
    setenv("SOURCE_DATE_EPOCH", bad, 1);
    EXPECT_EQ(test::thrown([] { default_created_at(); }).rule, "misuse/source-date-epoch") << bad;
  }
  unsetenv("SOURCE_DATE_EPOCH");
  if (before) setenv("SOURCE_DATE_EPOCH", kept.c_str(), 1);
}

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

// SPDX-License-Identifier: Apache-2.0
// Times as ISO 8601 text, and SOURCE_DATE_EPOCH.
#include "base/timestamp.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/thrown.h"

namespace weighbridge::base {
namespace {

TEST(Timestamp, KnowsIso8601) {
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

TEST(Timestamp, SpellsSeconds) {
  EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time(1'737'028'800), "2025-01-16T12:00:00Z");
  EXPECT_EQ(utc_time(951'827'696), "2000-02-29T12:34:56Z");
  EXPECT_EQ(utc_time(253'402'300'799), "9999-12-31T23:59:59Z");
  EXPECT_TRUE(is_iso8601(utc_time(1'234'567'890)));
}

TEST(Timestamp, TakesSourceDateEpoch) {
  const char* const before = std::getenv("SOURCE_DATE_EPOCH");
  const std::string kept = before ? before : "";
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_EQ(reproducible_time(), "1970-01-01T00:00:00Z");
  setenv("SOURCE_DATE_EPOCH", "1737028800", 1);
  EXPECT_EQ(reproducible_time(), "2025-01-16T12:00:00Z");
  for (const char* bad : {"now", "-1", "1737028800 ", "253402300800"}) {
    setenv("SOURCE_DATE_EPOCH", bad, 1);
    EXPECT_EQ(test::thrown([] { reproducible_time(); }).rule, "misuse/source-date-epoch") << bad;
  }
  unsetenv("SOURCE_DATE_EPOCH");
  if (before) setenv("SOURCE_DATE_EPOCH", kept.c_str(), 1);
}

}  // namespace
}  // namespace weighbridge::base

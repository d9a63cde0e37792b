// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "weighbridge/text.h"

namespace weighbridge {
namespace {

TEST(Glob, MatchesTheWholeText) {
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_TRUE(matches_glob("a.b", "a.b"));
  EXPECT_FALSE(matches_glob("a.b", "axb"));
  EXPECT_FALSE(matches_glob("a", "ab"));
  EXPECT_FALSE(matches_glob("b", "ab"));
}

TEST(Glob, AStarTakesAnyNumberOfCharacters) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("*", "layer.0.w"));
  EXPECT_TRUE(matches_glob("layer.*.w", "layer.0.w"));
  EXPECT_TRUE(matches_glob("*a*b*", "xaxxbx"));
  EXPECT_FALSE(matches_glob("*a*b", "xaxxbx"));
  EXPECT_TRUE(matches_glob("**", "x"));
}

TEST(Glob, AQuestionMarkTakesOneCharacterOfUtf8) {
  EXPECT_TRUE(matches_glob("a?c", "abc"));
  EXPECT_TRUE(matches_glob("a?c",
                           "a\xC3\xA9"
                           "c"));
  EXPECT_FALSE(matches_glob("a?c", "ac"));
  EXPECT_FALSE(matches_glob("?", ""));
}

TEST(Glob, ASetTakesOneByteOfIt) {
  EXPECT_TRUE(matches_glob("w[0-9]", "w7"));
  EXPECT_FALSE(matches_glob("w[0-9]", "wx"));
  EXPECT_TRUE(matches_glob("w[!0-9]", "wx"));
  EXPECT_FALSE(matches_glob("w[!0-9]", "w7"));
  EXPECT_TRUE(matches_glob("[]]", "]"));
  EXPECT_TRUE(matches_glob("a[b", "a[b"));  // it never closes
}

TEST(Glob, TakesNoMoreThanTheProductOfBothLengths) {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_FALSE(matches_glob(pattern, std::string(2000, 'a') + "b"));  // exponential if every star were retried
}

}  // namespace
}  // namespace weighbridge

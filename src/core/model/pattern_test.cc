// SPDX-License-Identifier: Apache-2.0
// Patterns beside std::regex for what both have, what is refused, and work on names made to be slow.
#include "core/model/pattern.h"

#include <gtest/gtest.h>

#include <regex>

#include "support/thrown.h"

namespace weighbridge::core {
namespace {

// Exercises every construct.
constexpr const char* kPatterns[] = {"a",
                                     "^model\\.",
                                     "(.)(.)",
                                     "x*",
                                     "a+b",
                                     "(a|ab)(c|bcd)",
                                     "[a-c]+$",
                                     "[^.]+",
                                     "\\d+",
                                     "\\bq\\b",
                                     "\\w\\W",
                                     "(?:ab)+",
                                     "a{2}",
                                     "a{1,2}b",
                                     "a{2,}",
                                     "(a*)(b?)",
                                     "b*?c",
                                     "(a+?)(a*)",
                                     "layers\\.(\\d+)\\.",
                                     "^$",
                                     "$",
                                     "^",
                                     "a|b|c|",
                                     "[\\d.]+",
                                     "[]a]",
                                     "\\.",
                                     "(a)|(b)",
                                     "\\Bb",
                                     "(ab|a)(bc)?",
                                     "((a)(b))+",
                                     "[-a]",
                                     "[a-]",
                                     "\\$",
                                     "x?y?z?"};
constexpr const char* kNames[] = {"",        "a",     "model.layers.10.q.weight",
                                  "aaabbb",  "abcd",  "abcabc",
                                  "xyzzy",   "b.c",   "model.mode",
                                  "q k v q", "a.b.c", "[]a-b",
                                  "$a$",     "aab"};

TEST(Pattern, ReplacesWhatTheStandardLibraryReplaces) {
  for (const char* pattern : kPatterns) {
    if (std::string(pattern) == "[]a]") continue;  // JavaScript: nothing, and then a]
    const std::regex known(pattern);
    for (const char* name : kNames)
      for (const bool all : {false, true}) {
        const std::string wanted =
            std::regex_replace(std::string(name), known, "<$1$&>",
                               all ? std::regex_constants::format_default : std::regex_constants::format_first_only);
        const auto found = Pattern("s/" + std::string(pattern) + "/<$1$&>/" + (all ? "g" : "")).apply(name);
        EXPECT_EQ(found.has_value(), std::regex_search(name, known)) << pattern << " " << name;
        EXPECT_EQ(found.value_or(name), wanted) << pattern << " " << name;
      }
  }
}

TEST(Pattern, ASlashIsWrittenWithABackslash) {
  EXPECT_EQ(Pattern("s/\\//./g").apply("a/b/c"), "a.b.c");
  EXPECT_EQ(Pattern("s/\\./\\//").apply("a.b"), "a/b");
  EXPECT_TRUE(Pattern::is_one("s/a//"));
  EXPECT_FALSE(Pattern::is_one("s/a"));
  EXPECT_FALSE(Pattern::is_one("s/x=y"));
  EXPECT_FALSE(Pattern::is_one("s//x/"));
}

TEST(Pattern, ADotIsACharacter) {
  EXPECT_EQ(Pattern("s/./x/").apply("\xC3\xA9t"), "xt");
  EXPECT_EQ(Pattern("s/[\xC3\xA0-\xC3\xBF]/x/").apply("\xC3\xA9t"), "xt");
  EXPECT_EQ(Pattern("s/./x/g").apply("\xFF\xFE"), "xx");
}

TEST(Pattern, WhatIsNotSupportedIsRefused) {
  for (const char* text : {"s/(/x/", "s/)/x/", "s/*/x/", "s/[a/x/", "s/(?=a)/x/", "s/(a)\\1/x/", "s/a{2,1}/x/",
                           "s/a{/x/", "s/a{1001}/x/", "s/(((a{100}){100}){100})/x/", "s/^*/x/", "s/[b-a]/x/",
                           "s/\\p{L}/x/", "s/(a)/\\1/", "s/\\/x", "nothing", "s/(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)/x/"})
    EXPECT_EQ(test::thrown([&] { Pattern{text}; }).rule, "misuse/option") << text;
  EXPECT_EQ(test::thrown([&] { Pattern{"s/" + std::string(5000, '(') + "/x/"}; }).rule, "misuse/option");
}

// std::regex recurses for each character, or takes a time that doubles with it.
TEST(Pattern, NamesThatWereMadeToBeSlowAreNot) {
  const std::string name(200'000, 'a');
  EXPECT_EQ(Pattern("s/(a*)*b/x/").apply(name), std::nullopt);
  EXPECT_EQ(Pattern("s/^(a|aa)+$/x/").apply(name), "x");
  EXPECT_EQ(Pattern("s/.*/x/").apply(name), "x");
  EXPECT_EQ(Pattern("s/a/b/g").apply(name), std::string(200'000, 'b'));
  EXPECT_EQ(test::thrown([&] { Pattern("s/a(b{900})?/x/g").apply(name); }).rule, "misuse/option");
  // Each of the matches looks at the whole rest of the name.
  EXPECT_EQ(test::thrown([&] { Pattern("s/a.*b|a/x/g").apply(name.substr(0, 20'000)); }).rule, "misuse/option");
}

}  // namespace
}  // namespace weighbridge::core

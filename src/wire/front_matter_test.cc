// SPDX-License-Identifier: Apache-2.0
#include "wire/front_matter.h"

#include <gtest/gtest.h>

namespace weighbridge::wire {
namespace {

using Values = std::vector<std::string>;

FrontMatter read(const std::string& yaml) { return read_front_matter("---\n" + yaml + "---\n# A model\n"); }
Values values(const std::string& yaml) {
  const FrontMatter out = read(yaml);
  const Values* const found = out.find("k");
  return found != nullptr ? *found : Values{"absent"};
}

TEST(FrontMatter, ScalarsAreTexts) {
  EXPECT_EQ(values("k: apache-2.0\n"), Values{"apache-2.0"});
  EXPECT_EQ(values("k: a b # a comment\n"), Values{"a b"});
  EXPECT_EQ(values("k: 'it''s'\n"), Values{"it's"});
  EXPECT_EQ(values("k: \"a\\n\\u00e9\" # x\n"), Values{"a\n\u00e9"});
  EXPECT_EQ(values("k: https://a.b/c\r\n"), Values{"https://a.b/c"});
  EXPECT_EQ(values("k: 1.0\nk: no\n"), Values{"no"});
  EXPECT_EQ(values("k: null\n"), Values{});
}

TEST(FrontMatter, ListsAreFlat) {
  EXPECT_EQ(values("k:\n- en\n- \"no\"\nother: 1\n"), (Values{"en", "no"}));
  EXPECT_EQ(values("k:  # two\n  - a/b\n\n  # one more\n  - c\n"), (Values{"a/b", "c"}));
  EXPECT_EQ(values("k: [en, \"a, b\", 'c']\n"), (Values{"en", "a, b", "c"}));
  EXPECT_EQ(values("k: []\n"), Values{});
}

TEST(FrontMatter, BlocksAreTexts) {
  EXPECT_EQ(values("k: |\n  one\n    two\n\n  three\nother: 1\n"), Values{"one\n  two\n\nthree\n"});
  EXPECT_EQ(values("k: >-\n  one\n  two\n\n  three\n"), Values{"one two\nthree"});
}

TEST(FrontMatter, OtherFormsAreSkippedByName) {
  for (const char* const yaml :
       {"k: {a: 1}\n", "k: &a b\n", "k:\n  a: 1\n", "k:\n- a: 1\n", "k:\n- - a\n", "k: a\n  b\n", "k: |+\n  a\n",
        "k: [a, [b]]\n", "k: [a\n", "k: 'a\n", "k: \"a\n", "k: a: b\n", "k: !x y\n", "k:\n- a\n  - b\n",
        "k: >\n  a\n    b\n", "k: ]\n", "k: [a,\n"}) {
    const FrontMatter out = read(std::string(yaml) + "license: mit\n");
    EXPECT_EQ(out.skipped, Values{"k"}) << yaml;
    ASSERT_NE(out.find("license"), nullptr) << yaml;
  }
  EXPECT_EQ(read("no key\n").skipped, Values{"no key"});
}

TEST(FrontMatter, ACardWithoutOneHasNothing) {
  for (const std::string text : {"", "---", "---\n", "---\nk: v\n", "# A\n---\nk: v\n---\n", "---\nk: \xff\n---\n"}) {
    const FrontMatter out = read_front_matter(text);
    EXPECT_TRUE(out.entries.empty() && out.skipped.empty()) << text;
  }
}

TEST(FrontMatter, KeysAreBounded) {
  std::string yaml;
  for (int i = 0; i < 100'000; ++i) yaml += "k" + std::to_string(i) + ": v\n";
  EXPECT_EQ(read(yaml).entries.size(), kMaxKeys);
}

}  // namespace
}  // namespace weighbridge::wire

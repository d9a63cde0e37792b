// SPDX-License-Identifier: Apache-2.0
// Text for display: everything that a terminal would obey or hide is escaped, and columns are counted as terminals do.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "weighbridge/text.h"

namespace weighbridge {
namespace {

using namespace std::string_view_literals;

TEST(EscapeForDisplay, LeavesWhatPeopleCanRead) {
  for (const std::string_view text : {""sv, "layer.0.weight"sv, "größe/重み #1 ~"sv, "e\u0301"sv, "😀"sv, "\u00a0"sv})
    EXPECT_EQ(escape_for_display(text), text);
}

TEST(EscapeForDisplay, ShowsControlsAndBackslashes) {
  EXPECT_EQ(escape_for_display("a\nb\r\t\x1b[31m\x7f"sv), R"(a\nb\r\t\x1b[31m\x7f)");
  EXPECT_EQ(escape_for_display("\0"sv), R"(\x00)");
  EXPECT_EQ(escape_for_display(R"(C:\n)"), R"(C:\\n)");
  EXPECT_EQ(escape_for_display("\u0085\u009b"), R"(\u{85}\u{9b})");
}

TEST(EscapeForDisplay, ShowsWhatReordersOrHides) {
  for (const char32_t hidden : {U'\u061C', U'\u200B', U'\u200C', U'\u200D', U'\u200E', U'\u200F', U'\u2028',
                                U'\u2029', U'\u202A', U'\u202B', U'\u202C', U'\u202D', U'\u202E', U'\u2060',
                                U'\u2066', U'\u2067', U'\u2068', U'\u2069', U'\uFEFF', U'\u00AD', U'\U000E0041'}) {
    std::string text = "a", expected = "a\\u{";
    base::append_utf8(text, hidden);
    char digits[9];
    std::snprintf(digits, sizeof digits, "%x", static_cast<unsigned>(hidden));
    expected += digits;
    EXPECT_EQ(escape_for_display(text + "b"), expected + "}b");
  }
}

TEST(EscapeForDisplay, ShowsInvalidBytesOneByOne) {
  EXPECT_EQ(escape_for_display("a\xff\xc0\x80z"sv), R"(a\xff\xc0\x80z)");
  EXPECT_EQ(escape_for_display("\xed\xa0\x80"sv), R"(\xed\xa0\x80)");
  EXPECT_EQ(escape_for_display("cut \xe2\x82"sv), R"(cut \xe2\x82)");
}

TEST(EscapeForDisplay, EveryByteAndCodePointComesOutReadable) {
  std::string all;
  for (char32_t c = 0; c <= 0x10FFFF; ++c)
    if (c < 0xD800 || c > 0xDFFF) base::append_utf8(all, c);
  for (unsigned byte = 0x80; byte < 0x100; ++byte) (all += 'x') += static_cast<char>(byte);
  const std::string shown = escape_for_display(all);
  EXPECT_TRUE(base::is_utf8(shown));
  for (std::size_t at = 0; at < shown.size();) {
    const base::Decoded decoded = base::decode_utf8(shown, at);
    ASSERT_FALSE(decoded.code_point < 0x20 || (decoded.code_point >= 0x7F && decoded.code_point < 0xA0));
    ASSERT_FALSE(decoded.code_point >= 0x202A && decoded.code_point <= 0x202E);
    at += decoded.length;
  }
}

TEST(DisplayWidth, CountsColumns) {
  const std::pair<std::string_view, std::size_t> cases[] = {{"", 0},
                                                            {"abc", 3},
                                                            {"größe", 5},
                                                            {"e\u0301", 1},
                                                            {"重み", 4},
                                                            {"한국", 4},
                                                            {"\u1112\u1161\u11ab", 2},
                                                            {"Ａ", 2},
                                                            {"ｱ", 1},
                                                            {"😀", 2},
                                                            {"🇩🇪", 2},
                                                            {"\u200b\u202e", 0},
                                                            {"\x1b\n", 0},
                                                            {"\xff\xfe", 2},
                                                            {"\u0600", 1},
                                                            {"𠀀", 2},
                                                            {"→", 1},
                                                            {"é", 1}};
  for (const auto& [text, width] : cases) EXPECT_EQ(display_width(text), width) << text;
}

TEST(DisplayWidth, OfEscapedAsciiIsItsLength) {
  const std::string shown = escape_for_display("a\x1b\u202e\xff"sv);
  EXPECT_EQ(display_width(shown), shown.size());
}

}  // namespace
}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Texts from a stream: lines, JSON lines and CSV records, however the bytes are split into reads.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/thrown.h"
#include "weighbridge/error.h"
#include "weighbridge/texts.h"

namespace weighbridge {
namespace {

TextPull pieces(std::string text, std::size_t piece) {
  return [text = std::move(text), piece, at = std::size_t{0}](std::span<char> out) mutable {
    const std::size_t n = std::min({piece, out.size(), text.size() - at});
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(at), n, out.begin());
    at += n;
    return n;
  };
}

std::vector<std::string> all(const std::string& text, TextForm form, std::size_t piece = 1000) {
  TextReader reader(pieces(text, piece), form);
  std::vector<std::string> out;
  for (std::string one; reader.next(one);) out.push_back(one);
  return out;
}

using Strings = std::vector<std::string>;

TEST(TextReader, LinesKeepEmptyOnesAndLoseTheirEnds) {
  for (const std::size_t piece : {1U, 2U, 1000U}) {
    EXPECT_EQ(all("a\r\n\nb c\n", TextForm::lines, piece), (Strings{"a", "", "b c"}));
    EXPECT_EQ(all("a\nb", TextForm::lines, piece), (Strings{"a", "b"}));
    EXPECT_EQ(all("", TextForm::lines, piece), Strings{});
  }
}

TEST(TextReader, JsonLinesMayHoldNewlinesAndNuls) {
  EXPECT_EQ(all("\"a\\nb\"\n\n{\"id\":1,\"text\":\"c\\u0000d\"}\n", TextForm::jsonl, 3),
            (Strings{"a\nb", std::string("c\0d", 3)}));
}

TEST(TextReader, ALineThatIsNeitherIsMalformedAtItsPlace) {
  for (const char* line : {"{\"text\":1}", "{}", "[]", "1", "\"a", "\"a\" b", "{\"text\":\"a\",\"text\":\"b\"}"}) {
    try {
      all("\"ok\"\n" + std::string(line) + "\n", TextForm::jsonl);
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.finding().rule, "texts/jsonl");
      EXPECT_EQ(error.kind(), Kind::malformed);
      EXPECT_EQ(error.finding().offset, 5U);
      EXPECT_TRUE(error.finding().message.starts_with("line 2 ")) << error.what();
    }
  }
}

TEST(TextReader, AMalformedLineIsToldWhatIsWrong) {
  const auto wrong = [](const std::string& line) {
    return test::thrown([&] { all(line + "\n", TextForm::jsonl); }).message;
  };
  EXPECT_EQ(wrong("{\"text\":1}"), "line 1 has a member \"text\" that is not a string");
  EXPECT_EQ(wrong("{\"id\":1}"), "line 1 is an object without a member \"text\"");
  EXPECT_EQ(wrong("{\"text\":\"a\",\"text\":\"b\"}"), "line 1 has two members \"text\"");
  EXPECT_TRUE(wrong("[1]").starts_with("line 1 is neither a JSON string nor an object")) << wrong("[1]");
  for (const char* line : {"\"a", "{\"text\":\"a\"", "{\"text\" 1}", "a text", "\"a\" b"})
    EXPECT_TRUE(wrong(line).starts_with("line 1 is not valid JSON: ")) << wrong(line);
}

TEST(TextReader, ALineLongerThanTheLimitIsRefused) {
  Limits limits;
  limits.memory = 10;
  TextReader reader(pieces(std::string(11, 'a'), 4), TextForm::lines, limits);
  std::string text;
  EXPECT_THROW(reader.next(text), Error);
}

TEST(TextReader, RecordsAreThoseOfRfc4180) {
  for (const std::size_t piece : {1U, 1000U}) {
    TextReader reader(pieces("a,\"b,\"\"c\"\"\n\",3.5\r\n,\nlast", piece), TextForm::lines);
    Strings fields;
    ASSERT_TRUE(reader.next_record(fields));
    EXPECT_EQ(fields, (Strings{"a", "b,\"c\"\n", "3.5"}));
    ASSERT_TRUE(reader.next_record(fields));
    EXPECT_EQ(fields, (Strings{"", ""}));
    ASSERT_TRUE(reader.next_record(fields));
    EXPECT_EQ(fields, (Strings{"last"}));
    EXPECT_FALSE(reader.next_record(fields));
  }
  TextReader open(pieces("a,\"b\n", 1000), TextForm::lines);
  Strings fields;
  EXPECT_THROW(open.next_record(fields), Error);
}

}  // namespace
}  // namespace weighbridge

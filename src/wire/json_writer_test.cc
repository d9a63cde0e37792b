// SPDX-License-Identifier: Apache-2.0
// The exact output of the JSON writer. json_test.cc has trees that it writes and nlohmann-json reads.
#include "wire/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "wire/json_reader.h"

namespace weighbridge::wire {
namespace {

TEST(JsonWriter, WritesCompactAndIndented) {
  const auto write = [](JsonWriter out) {
    out.begin_object();
    out.key("a"), out.u64(std::numeric_limits<std::uint64_t>::max());
    out.key("b"), out.begin_array(), out.i64(std::numeric_limits<std::int64_t>::min()), out.boolean(true), out.null(),
        out.end_array();
    out.key("c"), out.begin_object(), out.end_object();
    out.key("d"), out.begin_array(), out.end_array();
    out.key("e"), out.raw("[1,2]");
    out.end_object();
    return out.take();
  };
  EXPECT_EQ(write(JsonWriter()),
            R"({"a":18446744073709551615,"b":[-9223372036854775808,true,null],"c":{},"d":[],"e":[1,2]})");
  EXPECT_EQ(write(JsonWriter(JsonWriter::Style::indented)),
            "{\n  \"a\": 18446744073709551615,\n  \"b\": [\n    -9223372036854775808,\n    true,\n    null\n  ],\n"
            "  \"c\": {},\n  \"d\": [],\n  \"e\": [1,2]\n}");
}

TEST(JsonWriter, EscapesOnlyWhatJsonDemands) {
  std::string out;
  append_json_string(out, std::string_view("\"\\\b\f\n\r\t\0\x1F/\x7F\xC3\xA9\xE2\x80\xAE", 16));
  EXPECT_EQ(out, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f/\x7F\xC3\xA9\xE2\x80\xAE\"");
  out.clear();
  append_json_string(out, "a\xFF\xC3(\xC3\xA9");
  EXPECT_EQ(out, "\"a\xEF\xBF\xBD\xEF\xBF\xBD(\xC3\xA9\"");
}

TEST(JsonWriter, ShowsNothingThatSteersATerminal) {
  JsonWriter out(JsonWriter::Style::shown);
  out.string(
      "a\x7F\xC2\x9B"
      "31m\xE2\x80\xAE\xF3\xA0\x80\x81\xC3\xA9");
  EXPECT_EQ(out.text(), "\"a\\u007f\\u009b31m\\u202e\\udb40\\udc01\xC3\xA9\"");
  JsonReader in(out.text());
  JsonString text;
  std::string scratch;
  ASSERT_TRUE(in.read_string(text));
  EXPECT_EQ(json_text(text, scratch),
            "a\x7F\xC2\x9B"
            "31m\xE2\x80\xAE\xF3\xA0\x80\x81\xC3\xA9");
}

TEST(JsonWriter, WritesTheShortestFloatThatReadsBack) {
  const auto number = [](auto value) {
    std::string out;
    append_json_number(out, value);
    return out;
  };
  EXPECT_EQ(number(1.0), "1.0");
  EXPECT_EQ(number(-0.0), "-0.0");
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(0.1f), "0.1");
  EXPECT_EQ(number(1e300), "1e+300");
  EXPECT_EQ(number(5e-324), "5e-324");
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "\"nan\"");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "\"inf\"");
  EXPECT_EQ(number(-std::numeric_limits<float>::infinity()), "\"-inf\"");
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(static_cast<std::uint64_t>(random()));
    if (!std::isfinite(value)) continue;
    const std::string text = number(value);
    JsonReader in(text);
    ASSERT_TRUE(in.skip_value() && in.finish()) << text;
    ASSERT_EQ(as_double(text), value) << text;
  }
}

}  // namespace
}  // namespace weighbridge::wire

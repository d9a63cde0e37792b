// SPDX-License-Identifier: Apache-2.0
// The JSON reader against its error table and nlohmann-json, and the writer's output against both.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "support/random.h"
#include "support/rounds.h"
#include "weighbridge/error.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::wire {
namespace {

using Tree = nlohmann::json;
using test::pick, test::Random;

// Builds what nlohmann-json would: the last of equal keys wins. nullopt if the reader fails, or a number is not a
// finite double.
std::optional<Tree> build(JsonReader& in) {
  std::string scratch;
  JsonString string;
  JsonNumber number;
  bool truth = false;
  switch (in.peek()) {
    case JsonKind::object: {
      Tree out = Tree::object();
      in.enter_object();
      while (in.next_key(string)) {
        const std::string key(json_text(string, scratch));
        auto value = build(in);
        if (!value) return std::nullopt;
        out[key] = std::move(*value);
      }
      return in.ok() ? std::optional(std::move(out)) : std::nullopt;
    }
    case JsonKind::array: {
      Tree out = Tree::array();
      in.enter_array();
      while (in.next_element()) {
        auto value = build(in);
        if (!value) return std::nullopt;
        out.push_back(std::move(*value));
      }
      return in.ok() ? std::optional(std::move(out)) : std::nullopt;
    }
    case JsonKind::string:
      if (!in.read_string(string)) return std::nullopt;
      return Tree(std::string(json_text(string, scratch)));
    case JsonKind::number:
      if (std::uint64_t small = 0; in.read_u64(small)) return Tree(small);
      if (!in.read_number(number)) return std::nullopt;
      if (const auto value = as_i64(number.raw)) return Tree(*value);
      if (const auto value = as_double(number.raw)) return Tree(*value);
      return std::nullopt;
    case JsonKind::boolean: return in.read_bool(truth) ? std::optional(Tree(truth)) : std::nullopt;
    case JsonKind::null: return in.read_null() ? std::optional(Tree(nullptr)) : std::nullopt;
    case JsonKind::none: break;
  }
  return std::nullopt;
}

std::optional<Tree> parse(std::string_view text, JsonError* error = nullptr) {
  JsonReader in(text);
  auto out = build(in);
  if (out && !in.finish()) out.reset();
  if (error) *error = in.error();
  return out;
}

JsonError json_skip_error(std::string_view text, std::uint32_t depth = 64) {
  JsonReader in(text, depth);
  if (in.skip_value()) in.finish();
  return in.error();
}

struct BrokenJson {
  std::string_view text;
  JsonErrorCode code;
  std::size_t offset;
};

TEST(JsonReader, NamesEachErrorAndWhereItIs) {
  using enum JsonErrorCode;
  const BrokenJson table[] = {
      {"", unexpected_end, 0},
      {"  ", unexpected_end, 2},
      {"[", unexpected_end, 1},
      {"[1", unexpected_end, 2},
      {"[1,", unexpected_end, 3},
      {"{", unexpected_end, 1},
      {"{\"a\"", unexpected_end, 4},
      {"{\"a\":", unexpected_end, 5},
      {"{\"a\":1", unexpected_end, 6},
      {"{\"a\":1,", unexpected_end, 7},
      {"\"ab", unexpected_end, 3},
      {"\"a\\", unexpected_end, 3},
      {"\"\\u12", unexpected_end, 5},
      {"\"\\ud800", unexpected_end, 7},
      {"\"\\ud800\\", unexpected_end, 8},
      {"\"\\ud800\\u", unexpected_end, 9},
      {"-", unexpected_end, 1},
      {"1.", unexpected_end, 2},
      {"1e", unexpected_end, 2},
      {"1e+", unexpected_end, 3},
      {"tru", unexpected_end, 3},
      {"n", unexpected_end, 1},
      {"fals", unexpected_end, 4},
      {"[1,]", unexpected_byte, 3},
      {"[,1]", unexpected_byte, 1},
      {"[1 2]", unexpected_byte, 3},
      {"[1}", unexpected_byte, 2},
      {"{,}", unexpected_byte, 1},
      {"{\"a\":1,}", unexpected_byte, 7},
      {"{1:2}", unexpected_byte, 1},
      {"{\"a\" 1}", unexpected_byte, 5},
      {"{\"a\":}", unexpected_byte, 5},
      {"{\"a\":1 \"b\":2}", unexpected_byte, 7},
      {"{\"a\":1]", unexpected_byte, 6},
      {"+1", unexpected_byte, 0},
      {".5", unexpected_byte, 0},
      {"NaN", unexpected_byte, 0},
      {"'a'", unexpected_byte, 0},
      {"[truE]", unexpected_byte, 4},
      {"nul!", unexpected_byte, 3},
      {"[1/**/]", unexpected_byte, 2},
      {"[\v1]", unexpected_byte, 1},
      {"[0x10]", unexpected_byte, 2},
      {"[\xC2\xA0]", unexpected_byte, 1},
      {"[\xEF\xBB\xBF]", unexpected_byte, 1},
      {"\"a\\x\"", bad_escape, 2},
      {"\"\\u12G4\"", bad_escape, 1},
      {"\"\\U0041\"", bad_escape, 1},
      {"\"\\ud800\\u00g0\"", bad_escape, 7},
      {"\"\\ud800\"", lone_surrogate, 1},
      {"\"ab\\udc00\"", lone_surrogate, 3},
      {"\"\\ud800\\n\"", lone_surrogate, 1},
      {"\"\\ud800\\ud800\"", lone_surrogate, 1},
      {"\"\\ud800x\"", lone_surrogate, 1},
      {"{\"\\udfff\":1}", lone_surrogate, 2},
      {"\"a\nb\"", control_character, 2},
      {"\"0123456789abcdef\x1F\"", control_character, 17},
      {"{\"\t\":1}", control_character, 2},
      {"\"\x80\"", invalid_utf8, 1},
      {"\"a\xC3\"", invalid_utf8, 2},
      {"\"\xC0\xAF\"", invalid_utf8, 1},
      {"{\"\xFF\":1}", invalid_utf8, 2},
      {"\"\xED\xA0\x80\"", invalid_utf8, 1},
      {"\"\xF4\x90\x80\x80\"", invalid_utf8, 1},
      {"\"0123456789abcdefg\xFE\"", invalid_utf8, 18},
      {"\"\xFF\n\"", invalid_utf8, 1},
      {"\"\xFF\\x\"", invalid_utf8, 1},
      {"\"\xFF\\ud800\"", invalid_utf8, 1},
      {"\"\xFF", invalid_utf8, 1},
      {"\"ab\n\xFF\"", control_character, 3},
      {"01", bad_number, 0},
      {"[-01]", bad_number, 1},
      {"[-]", bad_number, 1},
      {"[1.]", bad_number, 1},
      {"[1.e5]", bad_number, 1},
      {"[1e]", bad_number, 1},
      {"[1e+]", bad_number, 1},
      {"[-a]", bad_number, 1},
      {"[ 00012345678901234567890]", bad_number, 2},
      {"1 2", trailing_bytes, 2},
      {"{}}", trailing_bytes, 2},
      {std::string_view("1\0", 2), trailing_bytes, 1},
      {"1.5.5", trailing_bytes, 3},
      {"\xEF\xBB\xBF{}", byte_order_mark, 0},
  };
  for (const BrokenJson& one : table) {
    JsonError pulled;
    EXPECT_FALSE(parse(one.text, &pulled)) << one.text;
    for (const JsonError& error : {pulled, json_skip_error(one.text)}) {
      EXPECT_EQ(name(error.code), name(one.code)) << one.text;
      EXPECT_EQ(error.offset, one.offset) << one.text;
      EXPECT_FALSE(error.sentence.empty()) << one.text;
    }
    // The oracle skips a byte-order mark and treats a NUL as the end.
    const bool lenient = one.code == byte_order_mark || one.text.find('\0') != std::string_view::npos;
    EXPECT_TRUE(lenient || !Tree::accept(one.text)) << one.text;
  }
}

TEST(JsonReader, GivesTheSameErrorWhereverAStringStands) {
  // Every alignment against the 16- and 8-byte steps, near the end of the text and far from it.
  for (const std::size_t after : {0u, 40u})
    for (std::size_t before = 0; before < 40; ++before)
      for (const char bad : {'\x00', '\x1F', '\x80', '\xFF'}) {
        const std::string text = "\"" + std::string(before, 'x') + bad + "\"" + std::string(after, ' ');
        const JsonError error = json_skip_error(text);
        EXPECT_EQ(error.offset, before + 1);
        EXPECT_EQ(error.code, static_cast<unsigned char>(bad) < 0x20 ? JsonErrorCode::control_character
                                                                     : JsonErrorCode::invalid_utf8);
      }
}

TEST(JsonReader, LimitsDepthExactly) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(json_skip_error(nested(64)).code, JsonErrorCode::none);
  EXPECT_EQ(json_skip_error(nested(65)).code, JsonErrorCode::too_deep);
  EXPECT_EQ(json_skip_error(nested(65)).offset, 64u);
  EXPECT_EQ(json_skip_error(nested(300), 300).code, JsonErrorCode::none);
  EXPECT_EQ(json_skip_error("{\"a\":[{}]}", 2).offset, 6u);
  EXPECT_EQ(json_skip_error("[]", 0).code, JsonErrorCode::too_deep);
  EXPECT_EQ(json_skip_error("1", 0).code, JsonErrorCode::none);
  EXPECT_EQ(json_skip_error(std::string(8'000'000, '[')).offset, 64u);
}

TEST(JsonReader, ErrorsStayOnceTheyAreFound) {
  JsonReader in("[01, 2]");
  ASSERT_TRUE(in.enter_array());
  ASSERT_TRUE(in.next_element());
  std::uint64_t value = 7;
  EXPECT_FALSE(in.read_u64(value));
  EXPECT_FALSE(in.next_element());
  EXPECT_FALSE(in.skip_value());
  EXPECT_FALSE(in.unwind(0));
  EXPECT_FALSE(in.finish());
  EXPECT_EQ(in.peek(), JsonKind::none);
  EXPECT_EQ(in.value_end(), std::nullopt);
  EXPECT_EQ(in.error().code, JsonErrorCode::bad_number);
  EXPECT_EQ(in.error().offset, 1u);
  EXPECT_EQ(value, 7u);
}

TEST(JsonReader, LeavesAValueOfAnotherKindToTheCaller) {
  JsonReader in("[ \"a\", -1, 1.0, 18446744073709551616, {\"k\": [1, {}]}, true]");
  ASSERT_TRUE(in.enter_array());
  std::uint64_t value = 0;
  for (const std::size_t offset : {2u, 7u, 11u, 16u, 38u, 54u}) {
    ASSERT_TRUE(in.next_element());
    EXPECT_FALSE(in.read_u64(value));
    EXPECT_FALSE(in.enter_array());
    EXPECT_FALSE(in.read_null());
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.offset(), offset);
    EXPECT_TRUE(in.skip_value());
  }
  EXPECT_FALSE(in.next_element());
  EXPECT_TRUE(in.finish());
}

TEST(JsonReader, ReadsUnsignedIntegersExactly) {
  for (const std::string_view tail : {"", "                          "}) {
    for (const std::string_view good : {"0", "7", "10", "12345678", "123456789", "999999999999999", "1000000000000000",
                                        "12345678901234567", "9223372036854775808", "18446744073709551615"}) {
      const std::string text = std::string(good) + std::string(tail);
      JsonReader in(text);
      std::uint64_t value = 0;
      EXPECT_TRUE(in.read_u64(value)) << good;
      EXPECT_EQ(std::to_string(value), good);
      EXPECT_EQ(in.value_end(), good.size());
      EXPECT_TRUE(in.finish());
    }
    for (const std::string_view other : {"-1", "-0", "1.0", "1e3", "12345678e1", "123456789012345.5",
                                         "18446744073709551616", "99999999999999999999", "100000000000000000000"}) {
      const std::string text = std::string(other) + std::string(tail);
      JsonReader in(text);
      std::uint64_t value = 0;
      EXPECT_FALSE(in.read_u64(value)) << other;
      EXPECT_TRUE(in.ok()) << other;
      JsonNumber number;
      EXPECT_TRUE(in.read_number(number));
      EXPECT_EQ(number.raw, other);
    }
    for (const std::string_view broken : {"01", "00", "012345678901", "1234567890.", "-"}) {
      const std::string text = std::string(broken) + std::string(tail);
      JsonReader in(text);
      std::uint64_t value = 0;
      EXPECT_FALSE(in.read_u64(value)) << broken;
      EXPECT_FALSE(in.ok()) << broken;
    }
  }
}

TEST(JsonNumbers, ConvertOnlyWhatFits) {
  EXPECT_EQ(as_u64(""), std::nullopt);
  EXPECT_EQ(as_u64("01"), std::nullopt);
  EXPECT_EQ(as_u64("1a"), std::nullopt);
  EXPECT_EQ(as_i64("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(as_i64("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(as_i64("9223372036854775808"), std::nullopt);
  EXPECT_EQ(as_i64("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(as_i64("-0"), 0);
  EXPECT_EQ(as_i64("-"), std::nullopt);
  EXPECT_EQ(as_double("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(as_double("1e309"), std::nullopt);
  EXPECT_EQ(as_double("1e-400"), 0.0);
  EXPECT_TRUE(std::signbit(*as_double("-0.0")));
  EXPECT_EQ(as_double("nan"), std::nullopt);
  EXPECT_EQ(as_double(""), std::nullopt);
}

TEST(JsonReader, GivesRawSlicesAndUndoesEscapesOnRequest) {
  const std::string text = R"({"plain":"a\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t\u0000z"})";
  JsonReader in(text);
  JsonString key, value;
  std::string scratch;
  ASSERT_TRUE(in.enter_object() && in.next_key(key) && in.read_string(value));
  EXPECT_FALSE(key.escaped);
  EXPECT_EQ(key.offset, 2u);
  EXPECT_EQ(json_text(key, scratch).data(), text.data() + 2);
  EXPECT_TRUE(value.escaped);
  EXPECT_EQ(text.substr(value.offset, value.raw.size()), value.raw);
  EXPECT_EQ(json_text(value, scratch), std::string("a\xC3\xA9\xF0\x9F\x98\x80\"\\/\b\f\n\r\t\0z", 17));
}

TEST(JsonReader, UnescapesAnyBytesWithoutHarm) {
  std::string out;
  for (const std::string_view raw : {"\\", "a\\u", "\\u12", "\\ud800", "\\ud800\\u", "\\uzzzz"}) unescape(raw, out);
  unescape("x\\", out);
  EXPECT_EQ(out, "x");
}

TEST(JsonReader, GoesOnAfterABrokenEntry) {
  JsonReader in(R"({"a":{"shape":[1,[2,{"x":3}],4],"more":1},"b":7,"c":8})");
  JsonString key;
  std::uint64_t value = 0;
  ASSERT_TRUE(in.enter_object() && in.next_key(key));
  const std::size_t depth = in.depth();
  ASSERT_TRUE(in.enter_object() && in.next_key(key) && in.enter_array() && in.next_element() && in.skip_value() &&
              in.next_element());
  EXPECT_EQ(in.depth(), 3u);
  EXPECT_TRUE(in.unwind(depth));
  ASSERT_TRUE(in.next_key(key));
  EXPECT_EQ(key.raw, "b");
  EXPECT_TRUE(in.unwind(depth));  // skips the pending value
  ASSERT_TRUE(in.next_key(key) && in.read_u64(value));
  EXPECT_EQ(value, 8u);
  EXPECT_TRUE(in.unwind(depth));  // nothing to do
  EXPECT_FALSE(in.next_key(key));
  EXPECT_TRUE(in.finish());
}

TEST(JsonReader, TellsWhereTheValueEndsForOtherPaddingRules) {
  JsonReader in(" {\"a\": [1]} \t");
  std::string_view raw;
  EXPECT_EQ(in.value_end(), std::nullopt);
  ASSERT_TRUE(in.skip_value(raw));
  EXPECT_EQ(raw, "{\"a\": [1]}");
  EXPECT_EQ(in.value_end(), 11u);
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(in.value_end(), 11u);
}

TEST(JsonReader, CallsOutOfOrderAreMisuse) {
  JsonString key;
  const auto kind_of = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    return Kind::io;
  };
  JsonReader in("{\"a\":1}");
  EXPECT_EQ(kind_of([&] { in.next_key(key); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.finish(); }), Kind::misuse);
  ASSERT_TRUE(in.enter_object());
  EXPECT_EQ(kind_of([&] { in.next_element(); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.skip_value(); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.rest(); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.take(0); }), Kind::misuse);
  ASSERT_TRUE(in.next_key(key));
  EXPECT_EQ(kind_of([&] { in.next_key(key); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.take(3); }), Kind::misuse);  // the text has two more bytes
}

TEST(JsonReader, ACallerMayReadAValueItself) {
  JsonReader in("[ {\"a\":[1]} , 7]");
  ASSERT_TRUE(in.enter_array());
  ASSERT_TRUE(in.next_element());
  EXPECT_EQ(in.rest(), "{\"a\":[1]} , 7]");
  EXPECT_TRUE(in.take(9));
  std::uint64_t seven = 0;
  ASSERT_TRUE(in.next_element());
  EXPECT_TRUE(in.read_u64(seven));
  EXPECT_EQ(seven, 7U);
  EXPECT_FALSE(in.next_element());
  EXPECT_TRUE(in.finish());
  JsonReader cut("[1,");
  ASSERT_TRUE(cut.enter_array() && cut.next_element() && cut.read_u64(seven) && cut.next_element());
  EXPECT_TRUE(cut.rest().empty());
  EXPECT_EQ(cut.error().code, JsonErrorCode::unexpected_end);
}

std::string random_text(Random& random) {
  static constexpr std::array<std::string_view, 14> kPieces = {
      "a", "weight",           ".", "\"", "\\", "\n", "\x01", "\x7F", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
      "/", "0123456789abcdef", " "};
  std::string out;
  for (std::size_t n = pick(random, 6); n > 0; --n) out += kPieces[pick(random, kPieces.size())];
  return out;
}

Tree random_tree(Random& random, int depth) {
  switch (pick(random, depth > 0 ? 9 : 7)) {
    case 0: return random_text(random);
    case 1: return random() >> pick(random, 64);
    case 2: return -static_cast<std::int64_t>(random() >> (1 + pick(random, 63)));
    case 3: {
      const double value = std::bit_cast<double>(static_cast<std::uint64_t>(random()));
      return std::isfinite(value) ? value : 0.5;
    }
    case 4: return pick(random, 2) == 0;
    case 5: return nullptr;
    case 6: return static_cast<double>(pick(random, 1000)) / 8;
    case 7: {
      Tree out = Tree::array();
      for (std::size_t n = pick(random, 5); n > 0; --n) out.push_back(random_tree(random, depth - 1));
      return out;
    }
    default: {
      Tree out = Tree::object();
      for (std::size_t n = pick(random, 5); n > 0; --n) out[random_text(random)] = random_tree(random, depth - 1);
      return out;
    }
  }
}

TEST(JsonOracle, GeneratedDocumentsReadAlike) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    const Tree tree = random_tree(random, 4);
    const std::string text = tree.dump(i % 2 == 0 ? -1 : 3, ' ', i % 3 == 0);
    const auto ours = parse(text);
    ASSERT_TRUE(ours) << text;
    ASSERT_EQ(*ours, tree) << text;
    ASSERT_EQ(json_skip_error(text).code, JsonErrorCode::none) << text;
  }
}

std::string mutate(Random& random, std::string text) {
  static constexpr std::string_view kBytes =
      "{}[]\",:\\ul0123456789dD8cC.eE+-tfn \n\t\x1F\x7F\x80\xBF\xC3\xE2\xED\xF4\xFF";
  for (std::size_t n = 1 + pick(random, 3); n > 0 && !text.empty(); --n) {
    const std::size_t at = pick(random, text.size());
    const char byte = kBytes[pick(random, kBytes.size())];
    switch (pick(random, 4)) {
      case 0: text[at] = byte; break;
      case 1: text.insert(at, 1, byte); break;
      case 2: text.erase(at, 1 + pick(random, 3)); break;
      default: text.insert(at, text.substr(pick(random, text.size()), pick(random, 12))); break;
    }
  }
  return text;
}

TEST(JsonOracle, MutatedDocumentsAreTakenByBothOrNeither) {
  Random random(2);
  int taken = 0, refused = 0;
  const int all = test::rounds(60'000);
  for (int i = 0; i < all; ++i) {
    const std::string text = mutate(random, random_tree(random, 3).dump(-1, ' ', i % 2 == 0));
    JsonError error;
    const auto ours = parse(text, &error);
    const Tree theirs = Tree::parse(text, nullptr, false);
    // Only a byte-order mark is accepted by the oracle and not by us.
    if (error.code == JsonErrorCode::byte_order_mark) continue;
    ASSERT_EQ(ours.has_value(), !theirs.is_discarded()) << text << "\nat " << error.offset << ": " << error.sentence;
    // Skipping checks as much as reading, except numbers beyond the range of double.
    if (error.code != JsonErrorCode::none) {
      ASSERT_EQ(json_skip_error(text).offset, error.offset) << text;
    }
    if (ours) {
      ASSERT_EQ(*ours, theirs) << text;
    }
    ++(ours ? taken : refused);
  }
  EXPECT_GT(taken, all / 60);
  EXPECT_GT(refused, all / 60);
}

TEST(JsonReader, RefusesEveryTruncation) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string text =
        Tree{{"k", random_tree(random, 4)}, {"\xF0\x9F\x98\x80", {1.5e7, -3, true, nullptr}}}.dump(-1, ' ', i % 2 == 0);
    for (std::size_t size = 0; size < text.size(); ++size) {
      // A separate copy, so that the address sanitizer detects a read past the end.
      const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
      const JsonError error = json_skip_error({cut.data(), cut.size()});
      ASSERT_TRUE(error.code == JsonErrorCode::unexpected_end || error.code == JsonErrorCode::invalid_utf8)
          << text.substr(0, size);
    }
  }
}

TEST(JsonReader, StaysLinearOnLongInput) {
  const auto repeat = [](std::string_view piece, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes) out += piece;
    return out;
  };
  constexpr std::size_t kBytes = 4'000'000;
  const std::string texts[] = {"\"" + repeat("\\u0041", kBytes) + "\"",
                               "\"" + repeat("\\ud83d\\ude00", kBytes) + "\"",
                               "\"" + repeat("\xC3\xA9", kBytes) + "\"",
                               "\"" + repeat("\xC3\xA9\\n", kBytes) + "\"",
                               "[" + repeat("[],", kBytes) + "0]",
                               "[" + repeat("{\"a\":{}},", kBytes) + "0]",
                               repeat(" ", kBytes) + "1",
                               repeat("7", kBytes),
                               "[" + repeat("1e5,", kBytes) + "0]",
                               "{" + repeat("\"\":0,", kBytes) + "\"\":0}"};
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& text : texts) EXPECT_EQ(json_skip_error(text).code, JsonErrorCode::none);
  // Anything quadratic in 4 MB takes hours; ten linear passes take a tenth of a second.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

void write_tree(JsonWriter& out, const Tree& tree) {
  if (tree.is_object()) {
    out.begin_object();
    for (const auto& [key, value] : tree.items()) out.key(key), write_tree(out, value);
    out.end_object();
  } else if (tree.is_array()) {
    out.begin_array();
    for (const Tree& value : tree) write_tree(out, value);
    out.end_array();
  } else if (tree.is_string()) {
    out.string(tree.get_ref<const std::string&>());
  } else if (tree.is_number_unsigned()) {
    out.u64(tree.get<std::uint64_t>());
  } else if (tree.is_number_integer()) {
    out.i64(tree.get<std::int64_t>());
  } else if (tree.is_number_float()) {
    out.number(tree.get<double>());
  } else if (tree.is_boolean()) {
    out.boolean(tree.get<bool>());
  } else {
    out.null();
  }
}

TEST(JsonOracle, ReadsBackWhatTheWriterWrites) {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    const Tree tree = random_tree(random, 4);
    JsonWriter out(i % 2 == 0 ? JsonWriter::Style::compact : JsonWriter::Style::indented);
    write_tree(out, tree);
    ASSERT_EQ(Tree::parse(out.text()), tree) << out.text();
    const auto ours = parse(out.text());
    ASSERT_TRUE(ours);
    ASSERT_EQ(*ours, tree) << out.text();
  }
}

}  // namespace
}  // namespace weighbridge::wire

// SPDX-License-Identifier: Apache-2.0
// The CBOR reader against RFC 8949's Appendix A, its error table and hostile bytes; the writer against the reader.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <limits>
#include <random>
#include <vector>

#include "support/random.h"
#include "support/rfc8949_appendix_a.h"
#include "support/rounds.h"
#include "weighbridge/error.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"
#include "wire/json_writer.h"

namespace weighbridge::wire {
namespace {

using test::pick, test::Random;

std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return out;
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes)
    for (const unsigned shift : {4u, 0u})
      out.push_back("0123456789abcdef"[static_cast<unsigned char>(c) >> shift & 15u]);
  return out;
}

std::string digits_of(const CborInteger& integer) {
  if (!integer.negative) return std::to_string(integer.argument);
  return integer.argument == std::numeric_limits<std::uint64_t>::max() ? "-18446744073709551616"
                                                                       : "-" + std::to_string(integer.argument + 1);
}

// Reads one item into diagnostic notation (RFC 8949, section 8; floats with their width) and, by the writer, into its
// deterministic form. Both are incomplete where the reader failed.
struct Copy {
  std::string words, bytes;
};

Copy copy_item(CborReader& in);

Copy copy_items(CborReader& in, bool map) {
  std::string words, bytes;
  std::uint64_t count = 0;
  for (; map ? in.next_entry() : in.next_element(); ++count) {
    if (count > 0) words += ", ";
    for (int i = 0; i < (map ? 2 : 1); ++i) {
      const Copy child = copy_item(in);
      words += (i == 1 ? ": " : "") + child.words;
      bytes += child.bytes;
    }
  }
  CborWriter out;
  if (map)
    out.map(count);
  else
    out.array(count);
  out.raw(bytes);
  return {(map ? "{" : "[") + words + (map ? "}" : "]"), out.take()};
}

Copy copy_item(CborReader& in) {
  CborWriter out;
  std::string words, scratch;
  CborString string;
  switch (in.peek()) {
    case CborKind::unsigned_integer:
    case CborKind::negative_integer: {
      CborInteger integer;
      in.read_integer(integer);
      words = digits_of(integer);
      if (integer.negative)
        out.negative(integer.argument);
      else
        out.u64(integer.argument);
      break;
    }
    case CborKind::bytes:
      if (!in.read_bytes(string)) break;
      words = "h'" + to_hex(cbor_text(string, scratch)) + "'";
      out.bytes(std::as_bytes(std::span(cbor_text(string, scratch))));
      break;
    case CborKind::text:
      if (!in.read_text(string)) break;
      append_json_string(words, cbor_text(string, scratch));
      out.text(cbor_text(string, scratch));
      break;
    case CborKind::array: in.enter_array(); return copy_items(in, false);
    case CborKind::map: in.enter_map(); return copy_items(in, true);
    case CborKind::tag: {
      std::uint64_t tag = 0;
      if (!in.read_tag(tag)) break;
      const Copy child = copy_item(in);
      out.tag(tag);
      out.raw(child.bytes);
      words = std::to_string(tag) + "(" + child.words + ")";
      break;
    }
    case CborKind::boolean: {
      bool truth = false;
      in.read_bool(truth);
      words = truth ? "true" : "false";
      out.boolean(truth);
      break;
    }
    case CborKind::null:
      in.read_null();
      words = "null";
      out.null();
      break;
    case CborKind::undefined:
    case CborKind::simple: {
      std::uint8_t value = 0;
      if (!in.read_simple(value)) break;
      words = value == 23 ? "undefined" : "simple(" + std::to_string(value) + ")";
      out.simple(value);
      break;
    }
    case CborKind::floating: {
      CborFloat number;
      if (!in.read_float(number)) break;
      append_json_number(words, number.value);
      words += "_" + std::to_string(number.width);
      out.floating(number.value);
      break;
    }
    case CborKind::none: break;
  }
  return {words, out.take()};
}

CborError cbor_skip_error(std::string_view bytes, std::uint32_t depth = 64) {
  CborReader in(bytes, depth);
  if (in.skip_item()) in.finish();
  return in.error();
}

CborError pull_error(std::string_view bytes) {
  CborReader in(bytes);
  copy_item(in);
  if (in.ok()) in.finish();
  return in.error();
}

TEST(CborReader, ReadsAppendixA) {
  for (const Vector& one : kAppendixA) {
    const std::string bytes = from_hex(one.hex);
    CborReader in(bytes);
    const Copy copy = copy_item(in);
    ASSERT_TRUE(in.ok()) << one.hex << ' ' << in.error().sentence;
    EXPECT_TRUE(in.finish()) << one.hex;
    EXPECT_EQ(copy.words, one.words) << one.hex;
    EXPECT_EQ(to_hex(copy.bytes) == one.hex, one.canonical) << one.hex << " came back as " << to_hex(copy.bytes);
    EXPECT_EQ(cbor_skip_error(bytes).code, CborErrorCode::none) << one.hex;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(cbor_skip_error({cut.data(), cut.size()}).code, CborErrorCode::none) << one.hex << " cut at " << size;
      EXPECT_NE(pull_error({cut.data(), cut.size()}).code, CborErrorCode::none) << one.hex << " cut at " << size;
    }
  }
}

struct BrokenCbor {
  std::string_view hex;
  CborErrorCode code;
  std::size_t offset;
};

TEST(CborReader, NamesEachErrorAndWhereItIs) {
  using enum CborErrorCode;
  const BrokenCbor table[] = {
      {"", unexpected_end, 0},
      {"18", unexpected_end, 1},
      {"19ff", unexpected_end, 2},
      {"1a000000", unexpected_end, 4},
      {"3b00000000000000", unexpected_end, 8},
      {"58", unexpected_end, 1},
      {"f8", unexpected_end, 1},
      {"f900", unexpected_end, 2},
      {"fb0000", unexpected_end, 3},
      {"c1", unexpected_end, 1},
      {"d8", unexpected_end, 1},
      {"9f", unexpected_end, 1},
      {"9f01", unexpected_end, 2},
      {"bf", unexpected_end, 1},
      {"bf01", unexpected_end, 2},
      {"bf0102", unexpected_end, 3},
      {"5f", unexpected_end, 1},
      {"5f4101", unexpected_end, 3},
      {"7f6161", unexpected_end, 3},
      {"5f58", unexpected_end, 2},
      {"828101", unexpected_end, 3},
      {"41", length_too_large, 0},
      {"8162c3", length_too_large, 1},
      {"5b7fffffffffffffff", length_too_large, 0},
      {"7bffffffffffffffff61", length_too_large, 0},
      {"81", length_too_large, 0},
      {"9bffffffffffffffff00", length_too_large, 0},
      {"a10100"
       "a201020304"
       "a2010203",
       trailing_bytes, 3},
      {"a2010203", length_too_large, 0},
      {"bb8000000000000000", length_too_large, 0},
      {"81a20102", length_too_large, 1},
      {"5f4101420aff", unexpected_end, 6},
      {"5f41014301ff", length_too_large, 3},
      {"1c", reserved_info, 0},
      {"1d", reserved_info, 0},
      {"1e", reserved_info, 0},
      {"1f", reserved_info, 0},
      {"3f", reserved_info, 0},
      {"5c", reserved_info, 0},
      {"7d", reserved_info, 0},
      {"9e", reserved_info, 0},
      {"bc", reserved_info, 0},
      {"df00", reserved_info, 0},
      {"dc00", reserved_info, 0},
      {"fc", reserved_info, 0},
      {"fd", reserved_info, 0},
      {"82001e", reserved_info, 2},
      {"5f5cff", reserved_info, 1},
      {"ff", unexpected_break, 0},
      {"81ff", unexpected_break, 1},
      {"a1ff00", unexpected_break, 1},
      {"a101ff", unexpected_break, 2},
      {"bf01ff", unexpected_break, 2},
      {"c1ff", unexpected_break, 1},
      {"9fc1ffff", unexpected_break, 2},
      {"8200ff", unexpected_break, 2},
      {"5f00ff", bad_chunk, 1},
      {"5f6161ff", bad_chunk, 1},
      {"7f4161ff", bad_chunk, 1},
      {"5f5f4101ffff", bad_chunk, 1},
      {"7f61617f6161ffff", bad_chunk, 3},
      {"5ff6ff", bad_chunk, 1},
      {"5fc14101ff", bad_chunk, 1},
      {"6180", invalid_utf8, 1},
      {"62c328", invalid_utf8, 1},
      {"6261ff", invalid_utf8, 2},
      {"63eda080", invalid_utf8, 1},
      {"6a61616161616161616180", invalid_utf8, 10},
      {"8261616162"
       "ff",
       trailing_bytes, 5},
      {"7f61c361a9ff", invalid_utf8, 2},
      {"a161ff00", invalid_utf8, 2},
      {"f800", bad_simple, 0},
      {"f814", bad_simple, 0},
      {"81f81f", bad_simple, 1},
      {"0000", trailing_bytes, 1},
      {"80ff", trailing_bytes, 1},
      {"9fff00", trailing_bytes, 2},
      {"c10000", trailing_bytes, 2},
  };
  for (const BrokenCbor& one : table) {
    const std::string bytes = from_hex(one.hex);
    for (const CborError& error : {cbor_skip_error(bytes), pull_error(bytes)}) {
      EXPECT_EQ(name(error.code), name(one.code)) << one.hex;
      EXPECT_EQ(error.offset, one.offset) << one.hex;
      EXPECT_FALSE(error.sentence.empty()) << one.hex;
    }
  }
}

TEST(CborReader, LimitsDepthOfArraysMapsAndTags) {
  const auto nested = [](char head, std::size_t depth) { return std::string(depth, head) + '\0'; };
  for (const char head : {'\x81', '\xC1'}) {
    EXPECT_EQ(cbor_skip_error(nested(head, 64)).code, CborErrorCode::none);
    EXPECT_EQ(cbor_skip_error(nested(head, 65)).code, CborErrorCode::too_deep);
    EXPECT_EQ(cbor_skip_error(nested(head, 65)).offset, 64u);
    EXPECT_EQ(cbor_skip_error(nested(head, 4'000'000)).offset, 64u);
    EXPECT_EQ(cbor_skip_error(nested(head, 300), 300).code, CborErrorCode::none);
  }
  EXPECT_EQ(cbor_skip_error(from_hex("a100c18100"), 2).offset, 3u);
  EXPECT_EQ(cbor_skip_error(std::string(70, '\x9F')).code, CborErrorCode::too_deep);
  // Also as keys of maps.
  EXPECT_EQ(cbor_skip_error(std::string(70, '\xBF')).offset, 64u);
  EXPECT_EQ(cbor_skip_error(from_hex("80"), 0).code, CborErrorCode::too_deep);
}

TEST(CborReader, LeavesATagWithItsItem) {
  const std::string bytes = from_hex(
      "82"
      "c1c280"
      "c101");
  CborReader in(bytes);
  std::uint64_t value = 0;
  ASSERT_TRUE(in.enter_array() && in.next_element() && in.read_tag(value) && in.read_tag(value));
  EXPECT_EQ(value, 2u);
  EXPECT_EQ(in.depth(), 3u);
  ASSERT_TRUE(in.enter_array());
  EXPECT_FALSE(in.next_element());
  EXPECT_EQ(in.depth(), 1u);
  ASSERT_TRUE(in.next_element() && in.read_tag(value) && in.read_u64(value));
  EXPECT_EQ(in.depth(), 1u);
  EXPECT_FALSE(in.next_element());
  EXPECT_TRUE(in.finish());
}

TEST(CborReader, LeavesAnItemOfAnotherKindToTheCaller) {
  const std::string bytes = from_hex(
      "87"
      "6161"
      "20"
      "f5"
      "f93c00"
      "80"
      "c100"
      "f6");
  CborReader in(bytes);
  std::uint64_t value = 0;
  CborString string;
  ASSERT_TRUE(in.enter_array());
  for (const std::size_t offset : {1u, 3u, 4u, 5u, 8u, 9u, 11u}) {
    ASSERT_TRUE(in.next_element());
    EXPECT_FALSE(in.read_u64(value));
    EXPECT_FALSE(in.read_bytes(string));
    EXPECT_FALSE(in.enter_map());
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.offset(), offset);
    EXPECT_TRUE(in.skip_item());
  }
  EXPECT_FALSE(in.next_element());
  EXPECT_TRUE(in.finish());
}

TEST(CborReader, GivesKeysAndVerbatimItemsAsSlices) {
  const std::string bytes = from_hex(
      "a3"
      "6161"
      "c19f01ff"
      "7f61626163ff"
      "1b0000000000000001"
      "f6"
      "f5");
  CborReader in(bytes);
  CborString key;
  std::string scratch;
  std::string_view slice;
  ASSERT_TRUE(in.enter_map() && in.next_entry() && in.read_text(key));
  EXPECT_EQ(key.offset, 2u);
  EXPECT_EQ(key.raw.data(), bytes.data() + 2);
  EXPECT_EQ(cbor_text(key, scratch), "a");
  ASSERT_TRUE(in.skip_item(slice));
  EXPECT_EQ(to_hex(slice), "c19f01ff");
  ASSERT_TRUE(in.next_entry() && in.read_text(key));
  EXPECT_TRUE(key.indefinite);
  EXPECT_EQ(cbor_text(key, scratch), "bc");
  ASSERT_TRUE(in.skip_item(slice));
  EXPECT_EQ(to_hex(slice), "1b0000000000000001");
  ASSERT_TRUE(in.next_entry());
  EXPECT_FALSE(in.read_text(key));
  ASSERT_TRUE(in.skip_item(slice));
  EXPECT_EQ(to_hex(slice), "f6");
  ASSERT_TRUE(in.skip_item());
  EXPECT_FALSE(in.next_entry());
  EXPECT_TRUE(in.finish());
}

TEST(CborReader, ConcatenatesAnyBytesWithoutHarm) {
  std::string out;
  for (const std::string_view hex : {"41", "58", "5bffffffffffffffff", "5f", "ff", "1c", "420101420101"}) {
    const std::string bytes = from_hex(hex);
    concatenate({0, bytes, true}, out);
  }
  EXPECT_EQ(to_hex(out), "01010101");
}

TEST(CborReader, GoesOnAfterABrokenEntry) {
  const std::string bytes = from_hex(
      "a3"
      "01"
      "8283c1010203a0"
      "02"
      "03"
      "04"
      "05");
  CborReader in(bytes);
  std::uint64_t value = 0;
  ASSERT_TRUE(in.enter_map() && in.next_entry());
  const std::size_t depth = in.depth();
  ASSERT_TRUE(in.read_u64(value) && in.enter_array() && in.next_element() && in.enter_array() && in.next_element() &&
              in.read_tag(value));
  EXPECT_TRUE(in.unwind(depth));
  ASSERT_TRUE(in.next_entry() && in.read_u64(value));
  EXPECT_EQ(value, 2u);
  EXPECT_TRUE(in.unwind(depth));  // skips the pending value
  ASSERT_TRUE(in.next_entry());
  EXPECT_TRUE(in.unwind(depth));  // skips key and value
  EXPECT_FALSE(in.next_entry());
  EXPECT_TRUE(in.finish());
}

TEST(CborReader, ErrorsStayOnceTheyAreFound) {
  const std::string bytes = from_hex("821c00");
  CborReader in(bytes);
  std::uint64_t value = 0;
  ASSERT_TRUE(in.enter_array() && in.next_element());
  EXPECT_FALSE(in.read_u64(value));
  EXPECT_FALSE(in.next_element());
  EXPECT_FALSE(in.skip_item());
  EXPECT_FALSE(in.unwind(0));
  EXPECT_FALSE(in.finish());
  EXPECT_EQ(in.peek(), CborKind::none);
  EXPECT_EQ(in.error().code, CborErrorCode::reserved_info);
  EXPECT_EQ(in.error().offset, 1u);
}

TEST(CborReader, CallsOutOfOrderAreMisuse) {
  const auto kind_of = [](auto&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    return Kind::io;
  };
  const std::string bytes = from_hex("a10102");
  CborReader in(bytes);
  EXPECT_EQ(kind_of([&] { in.next_entry(); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.finish(); }), Kind::misuse);
  ASSERT_TRUE(in.enter_map());
  EXPECT_EQ(kind_of([&] { in.skip_item(); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { in.next_element(); }), Kind::misuse);
  ASSERT_TRUE(in.next_entry());
  EXPECT_EQ(kind_of([&] { in.next_entry(); }), Kind::misuse);
  CborWriter out;
  EXPECT_EQ(kind_of([&] { out.text("\xFF"); }), Kind::misuse);
  EXPECT_EQ(kind_of([&] { out.simple(24); }), Kind::misuse);
}

TEST(CborReader, ACallerMayReadAnItemItself) {
  const std::string bytes = from_hex("82a161610107");  // [{"a": 1}, 7]
  CborReader in(bytes, 3);
  ASSERT_TRUE(in.enter_array());
  EXPECT_TRUE(in.rest(0).empty()) << "no item is due before next_element()";
  EXPECT_THROW(in.take(1), Error);
  ASSERT_TRUE(in.next_element());
  EXPECT_EQ(to_hex(in.rest(2)), "a161610107");
  EXPECT_TRUE(in.rest(3).empty()) << "one level of three is open";
  EXPECT_THROW(in.take(6), Error) << "more than is there";
  EXPECT_TRUE(in.take(4));
  std::uint64_t seven = 0;
  ASSERT_TRUE(in.next_element() && in.read_u64(seven));
  EXPECT_EQ(seven, 7U);
  EXPECT_FALSE(in.next_element());
  EXPECT_TRUE(in.finish());
}

TEST(CborReader, NumbersAreReadWithAndWithoutAReader) {
  for (const std::string_view hex : {"00", "17", "1818", "19ffff", "1a00010000", "1bffffffffffffffff", "1c", "1f", "20",
                                     "18", "1901", "1a000000", "1b00000000000000", "60", "f6", ""}) {
    const std::string bytes = from_hex(hex);
    std::uint64_t expected = 0, found = 0;
    CborReader in(bytes);
    const bool good = !bytes.empty() && in.peek() == CborKind::unsigned_integer && in.read_u64(expected);
    EXPECT_EQ(cbor_u64(bytes.data(), bytes.data() + bytes.size(), found), good ? bytes.size() : 0U) << hex;
    EXPECT_EQ(found, expected) << hex;
  }
}

TEST(CborInteger, ConvertsOnlyWhatFits) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  EXPECT_EQ((CborInteger{false, kTop - 1}.as_i64()), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((CborInteger{false, kTop}.as_i64()), std::nullopt);
  EXPECT_EQ((CborInteger{true, kTop - 1}.as_i64()), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ((CborInteger{true, kTop}.as_i64()), std::nullopt);
}

TEST(CborWriter, WritesTheShortestHead) {
  const auto hex = [](std::int64_t value) {
    CborWriter out;
    out.i64(value);
    return to_hex(out.data());
  };
  EXPECT_EQ(hex(23), "17");
  EXPECT_EQ(hex(24), "1818");
  EXPECT_EQ(hex(255), "18ff");
  EXPECT_EQ(hex(256), "190100");
  EXPECT_EQ(hex(65535), "19ffff");
  EXPECT_EQ(hex(65536), "1a00010000");
  EXPECT_EQ(hex(4294967295), "1affffffff");
  EXPECT_EQ(hex(4294967296), "1b0000000100000000");
  EXPECT_EQ(hex(-24), "37");
  EXPECT_EQ(hex(-25), "3818");
  EXPECT_EQ(hex(std::numeric_limits<std::int64_t>::min()), "3b7fffffffffffffff");
}

TEST(CborWriter, NarrowsFloatsOnlyWhenEveryBitStays) {
  const auto write = [](std::uint64_t bits) {
    CborWriter out;
    out.floating(std::bit_cast<double>(bits));
    return out.take();
  };
  const auto width = [&](std::uint64_t bits) { return write(bits).size() - 1; };
  // Every half is written as itself.
  for (unsigned half = 0; half < 65536; ++half) {
    const std::string bytes{'\xF9', static_cast<char>(half >> 8), static_cast<char>(half & 0xFF)};
    CborReader in(bytes);
    CborFloat number;
    ASSERT_TRUE(in.read_float(number));
    ASSERT_EQ(number.bits, half);
    ASSERT_EQ(to_hex(write(std::bit_cast<std::uint64_t>(number.value))), to_hex(bytes));
  }
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(65505.0)), 4u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(65536.0)), 4u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(0x1p-25)), 4u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(0x1.8p-24)), 4u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(0x1p-149)), 4u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(0x1p-150)), 8u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(0.1)), 8u);
  EXPECT_EQ(width(std::bit_cast<std::uint64_t>(1e300)), 8u);
  EXPECT_EQ(width(1), 8u);
  EXPECT_EQ(width(0x7FF8'0000'2000'0000), 4u);
  EXPECT_EQ(width(0x7FF8'0000'0000'0001), 8u);
  CborWriter fixed;
  fixed.float16(0x3C00), fixed.float32(1), fixed.float64(1);
  EXPECT_EQ(to_hex(fixed.data()),
            "f93c00"
            "fa3f800000"
            "fb3ff0000000000000");
}

void random_item(Random& random, CborWriter& out, int depth) {
  const std::size_t count = pick(random, 4);
  switch (pick(random, depth > 0 ? 10 : 7)) {
    case 0: return out.u64(random() >> pick(random, 64));
    case 1: return out.negative(random() >> pick(random, 64));
    case 2: return out.text(std::string(pick(random, 30), 'x') + (pick(random, 2) == 0 ? "\xE2\x82\xAC" : ""));
    case 3: return out.bytes(std::vector<std::byte>(pick(random, 30), std::byte{0xFF}));
    case 4: return out.floating(std::bit_cast<double>(static_cast<std::uint64_t>(random())));
    case 5: return out.boolean(count == 0);
    case 6:
      return count == 0   ? out.null()
             : count == 1 ? out.undefined()
                          : out.simple(static_cast<std::uint8_t>(32 + pick(random, 200)));
    case 7: out.tag(random() >> pick(random, 64)); return random_item(random, out, depth - 1);
    case 8:
      out.array(count);
      for (std::size_t i = 0; i < count; ++i) random_item(random, out, depth - 1);
      return;
    default:
      out.map(count);
      for (std::size_t i = 0; i < 2 * count; ++i) random_item(random, out, depth - 1);
  }
}

TEST(CborReader, GivesBackWhatTheWriterWrote) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    CborWriter out;
    random_item(random, out, 5);
    CborReader in(out.data());
    const Copy copy = copy_item(in);
    ASSERT_TRUE(in.ok() && in.finish()) << to_hex(out.data()) << ' ' << in.error().sentence;
    ASSERT_EQ(to_hex(copy.bytes), to_hex(out.data()));
    if (i % 10 != 0) continue;
    for (std::size_t size = 0; size < out.data().size(); ++size) {
      const std::vector<char> cut(out.data().begin(), out.data().begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_NE(cbor_skip_error({cut.data(), cut.size()}).code, CborErrorCode::none)
          << to_hex(out.data()) << " cut at " << size;
    }
  }
}

TEST(CborReader, SkipsAndPullsMutatedBytesAlike) {
  Random random(2);
  int taken = 0, refused = 0;
  const int all = test::rounds(60'000);
  for (int i = 0; i < all; ++i) {
    CborWriter out;
    random_item(random, out, 4);
    std::string bytes = out.take();
    for (std::size_t n = 1 + pick(random, 3); n > 0; --n) {
      const std::size_t at = pick(random, bytes.size());
      if (pick(random, 3) == 0)
        bytes.insert(at, 1, static_cast<char>(random()));
      else
        bytes[at] = static_cast<char>(pick(random, 2) == 0 ? random() : pick(random, 8) << 5 | 31);
    }
    const std::vector<char> exact(bytes.begin(), bytes.end());
    CborReader in(std::string_view(exact.data(), exact.size()));
    const Copy copy = copy_item(in);
    if (in.ok()) in.finish();
    const CborError skipped = cbor_skip_error({exact.data(), exact.size()});
    ASSERT_EQ(skipped.code, in.error().code) << to_hex(bytes);
    ASSERT_EQ(skipped.offset, in.error().offset) << to_hex(bytes);
    ++(in.ok() ? taken : refused);
    if (!in.ok()) continue;
    // Accepted bytes have a deterministic form that means the same and maps to itself.
    CborReader again(copy.bytes);
    ASSERT_EQ(to_hex(copy_item(again).bytes), to_hex(copy.bytes)) << to_hex(bytes);
  }
  EXPECT_GT(taken, all / 60);
  EXPECT_GT(refused, all / 60);
}

TEST(CborReader, StaysLinearOnLongInput) {
  constexpr std::size_t kBytes = 4'000'000;
  const std::string texts[] = {
      '\x7F' + std::string(kBytes, '\x60') + '\xFF',         // empty chunks
      '\x9F' + std::string(kBytes, '\x80') + '\xFF',         // empty arrays
      '\xBF' + std::string(kBytes, '\xA0') + '\xFF',         // empty maps as keys and values
      from_hex("9a003d0900") + std::string(kBytes, '\xF6'),  // the largest valid count
  };
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& bytes : texts) EXPECT_EQ(cbor_skip_error(bytes).code, CborErrorCode::none);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace weighbridge::wire

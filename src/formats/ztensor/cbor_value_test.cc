// SPDX-License-Identifier: Apache-2.0
// Values in CBOR and texts of digests, which the zTensor formats share.
#include "formats/ztensor/cbor_value.h"

#include <gtest/gtest.h>

#include "codecs/checksum.h"
#include "core/payload/part_digest.h"
#include "support/cbor_items.h"

namespace weighbridge::ztensor {
namespace {

using wire::items::array;
using wire::items::map;
using wire::items::number;
using wire::items::text;

Value read(const std::string& item, Floats floats = Floats::own_width) {
  wire::CborReader in(item);
  core::Budget budget{UINT64_MAX};
  std::optional<std::size_t> duplicate;
  const Value value = read_value(in, budget, duplicate, floats);
  EXPECT_TRUE(in.finish());
  EXPECT_FALSE(duplicate.has_value());
  return value;
}
std::string written(const Value& value, Floats floats = Floats::own_width) {
  wire::CborWriter out;
  write_value(out, value, floats);
  return out.take();
}

TEST(CborValue, KeepsTheWidthOfFloatsWhereItIsPartOfTheValue) {
  const std::string half("\xf9\x3e\0", 3), wide("\xfb\x3f\xf8\0\0\0\0\0\0", 9);
  EXPECT_TRUE(read(half) == Value::real(1.5, DType::f16));
  EXPECT_TRUE(read(wide) == Value::real(1.5));
  EXPECT_EQ(written(read(half)), half);
  EXPECT_EQ(written(read(wide)), wide);
}

TEST(CborValue, WritesTheShortestFloatWhereTheWidthMeansNothing) {
  const std::string half("\xf9\x3e\0", 3), single("\xfa\x3d\xcc\xcc\xcd"), wide("\xfb\x3f\xf8\0\0\0\0\0\0", 9);
  for (const std::string& item : {half, wide}) {
    EXPECT_TRUE(read(item, Floats::shortest) == Value::real(1.5));
    EXPECT_EQ(written(read(item, Floats::shortest), Floats::shortest), half);
  }
  EXPECT_EQ(written(read(single, Floats::shortest), Floats::shortest), single);
  const std::string nested = array({map({{text("k"), array({half, single})}})});
  EXPECT_EQ(written(read(nested, Floats::shortest), Floats::shortest), nested);
}

TEST(CborValue, IsVerbatimPastTheBudget) {
  const std::string item = array({number(1), number(2)});
  wire::CborReader in(item);
  core::Budget budget{10};
  std::optional<std::size_t> duplicate;
  const Value value = read_value(in, budget, duplicate);
  EXPECT_EQ(value.kind(), Value::Kind::foreign);
  EXPECT_EQ(codecs::to_hex(value.bytes()), "820102");
}

TEST(CborValue, FindsAKeyThatAMapHasTwice) {
  const std::string item = array({map({{text("a"), number(1)}, {text("a"), number(2)}})});
  wire::CborReader in(item);
  core::Budget budget{UINT64_MAX};
  std::optional<std::size_t> duplicate;
  read_value(in, budget, duplicate);
  EXPECT_EQ(duplicate, 5U);
}

TEST(PartDigest, IsKnownMalformedOrOfAnotherAlgorithm) {
  const std::string sha(64, 'A');
  EXPECT_EQ(core::parse_digest("sha256:" + sha).kind, core::PartDigest::sha256);
  EXPECT_EQ(core::parse_digest("crc32c:0x0aBcDeF9").digits, "0aBcDeF9");
  for (const char* malformed : {"sha256:", "sha256:00", "crc32c:", "crc32c:0x", "crc32c:0x123", "crc32c:12345678"}) {
    EXPECT_EQ(core::parse_digest(malformed).kind, core::PartDigest::none) << malformed;
    EXPECT_FALSE(core::parse_digest(malformed).problem.empty()) << malformed;
  }
  for (const char* other : {"", "md5:00", "sha256", "SHA256:00"}) {
    EXPECT_EQ(core::parse_digest(other).kind, core::PartDigest::none) << other;
    EXPECT_TRUE(core::parse_digest(other).problem.empty()) << other;
  }
  for (const core::PartDigest kind : {core::PartDigest::sha256, core::PartDigest::crc32c})
    EXPECT_EQ(core::parse_digest(core::placeholder(kind)).kind, kind);
}

}  // namespace
}  // namespace weighbridge::ztensor

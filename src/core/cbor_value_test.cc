// SPDX-License-Identifier: Apache-2.0
// What the zTensor formats share: values in CBOR, texts of digests, aliases.
#include "core/cbor_value.h"

#include <gtest/gtest.h>

#include "codecs/checksum.h"
#include "core/aliases.h"
#include "core/part_digest.h"
#include "wire/cbor_items.h"

namespace weighbridge::core {
namespace {

using wire::items::array;
using wire::items::map;
using wire::items::number;
using wire::items::text;

Value read(const std::string& item, Floats floats = Floats::own_width) {
  wire::CborReader in(item);
  ValueBudget budget{UINT64_MAX};
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
  ValueBudget budget{10};
  std::optional<std::size_t> duplicate;
  const Value value = read_value(in, budget, duplicate);
  EXPECT_EQ(value.kind(), Value::Kind::foreign);
  EXPECT_EQ(codecs::to_hex(value.bytes()), "820102");
}

TEST(CborValue, FindsAKeyThatAMapHasTwice) {
  const std::string item = array({map({{text("a"), number(1)}, {text("a"), number(2)}})});
  wire::CborReader in(item);
  ValueBudget budget{UINT64_MAX};
  std::optional<std::size_t> duplicate;
  read_value(in, budget, duplicate);
  EXPECT_EQ(duplicate, 5U);
}

TEST(PartDigest, IsKnownMalformedOrOfAnotherAlgorithm) {
  const std::string sha(64, 'A');
  EXPECT_EQ(parse_digest("sha256:" + sha).kind, PartDigest::sha256);
  EXPECT_EQ(parse_digest("crc32c:0x0aBcDeF9").digits, "0aBcDeF9");
  for (const char* malformed : {"sha256:", "sha256:00", "crc32c:", "crc32c:0x", "crc32c:0x123", "crc32c:12345678"}) {
    EXPECT_EQ(parse_digest(malformed).kind, PartDigest::none) << malformed;
    EXPECT_FALSE(parse_digest(malformed).problem.empty()) << malformed;
  }
  for (const char* other : {"", "md5:00", "sha256", "SHA256:00"}) {
    EXPECT_EQ(parse_digest(other).kind, PartDigest::none) << other;
    EXPECT_TRUE(parse_digest(other).problem.empty()) << other;
  }
  for (const PartDigest kind : {PartDigest::sha256, PartDigest::crc32c})
    EXPECT_EQ(parse_digest(placeholder(kind)).kind, kind);
}

TEST(Aliases, AreTheFirstPartWithTheSameExtent) {
  EXPECT_TRUE(first_aliases(Model()).empty());
  const std::string bytes = "abcd";
  const auto span = std::as_bytes(std::span(bytes));
  Builder stored;
  stored.tensor("x", DType::u8, {4}, {span, nullptr});
  stored.tensor("y", DType::u8, {2}, {span.first(2), nullptr});
  stored.tensor("empty", DType::u8, {0}, Bytes{});
  const Model from = stored.build();
  Builder adopted;
  adopted.tensor("a", from["x"]).tensor("b", from["y"]).tensor("c", from["x"]);
  adopted.tensor("d", from["empty"]).tensor("e", from["empty"]);
  const Model model = adopted.build();
  EXPECT_EQ(first_aliases(model), (std::vector<std::uint32_t>{0, 1, 0, 3, 4}));
}

// Found in a conversion that stored two tensors once, though one of them was big-endian.
TEST(Aliases, OfAnotherByteOrderOrAxisOrderAreOtherElements) {
  const std::string bytes(16, 'x');
  const std::uint64_t square[] = {2, 2}, flat[] = {4}, wide[] = {1, 4};
  Draft draft;
  const std::uint32_t source = draft.add_source(memory_source({std::as_bytes(std::span(bytes)), nullptr}));
  const auto add = [&](const char* name, DType dtype, Shape shape) {
    draft.add_tensor(name, Layout::dense, dtype, shape);
    return draft.add_part("data", dtype, shape, Encoding::raw, {source, 0, 16}, 16);
  };
  add("row", DType::f32, square);
  add("flat", DType::f32, flat);
  draft.state.parts[add("big", DType::f32, square)].order = Order::big;
  draft.part_side(add("column", DType::f32, square)).strides = {1, 2};
  draft.part_side(add("same column", DType::f32, square)).strides = {1, 2};
  draft.part_side(add("other shape", DType::f32, wide)).strides = {1, 2};
  add("integer", DType::i32, square);
  draft.index_names();
  const Model model = draft.finish();
  const auto same = [&](const char* x, const char* y) { return same_elements(model[x].main(), model[y].main()); };
  EXPECT_TRUE(same("row", "flat"));
  EXPECT_TRUE(same("column", "same column"));
  for (const char* const other : {"big", "column", "integer"}) EXPECT_FALSE(same("row", other)) << other;
  EXPECT_FALSE(same("column", "other shape"));
}

}  // namespace
}  // namespace weighbridge::core

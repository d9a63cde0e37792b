// SPDX-License-Identifier: Apache-2.0
// Restoring types of attributes from foreign or hostile files: a value that fits its type gets that type, any other is
// refused.
#include "formats/ztensor/cbor_value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/ztensor/v1/manifest.h"
#include "support/cbor_items.h"
#include "wire/base64.h"

namespace weighbridge::ztensor1 {
namespace {

using wire::items::array;
using wire::items::map;
using wire::items::number;
using wire::items::text;

std::vector<std::byte> to_bytes(std::string_view data) {
  const auto view = std::as_bytes(std::span(data));
  return {view.begin(), view.end()};
}
std::optional<Value> of_text(std::string stored, std::string_view type) {
  return ztensor::restore(Value::text(std::move(stored)), type);
}
// The type that carries a CBOR item itself.
std::string item_type(std::string_view item) { return "cbor " + wire::encode_base64(std::as_bytes(std::span(item))); }

TEST(ZtensorTypes, IntegersAreOfTheirWidthOrNothing) {
  EXPECT_EQ(of_text("255", "u8"), Value::integer(std::uint64_t{255}, DType::u8));
  EXPECT_EQ(of_text("18446744073709551615", "u64"), Value::integer(std::uint64_t{UINT64_MAX}));
  EXPECT_EQ(of_text("-128", "i8"), Value::integer(std::int64_t{-128}, DType::i8));
  EXPECT_EQ(of_text("-9223372036854775808", "i64"), Value::integer(std::int64_t{INT64_MIN}));
  for (const auto& [stored, type] : {std::pair{"256", "u8"},
                                     {"-1", "u8"},
                                     {"65536", "u16"},
                                     {"4294967296", "u32"},
                                     {"18446744073709551616", "u64"},
                                     {"x", "u64"},
                                     {"", "u8"},
                                     {" 1", "u8"},
                                     {"1.5", "i32"},
                                     {"128", "i8"},
                                     {"-129", "i8"},
                                     {"2147483648", "i32"},
                                     {"9223372036854775808", "i64"}})
    EXPECT_EQ(of_text(stored, type), std::nullopt) << stored << " as " << type;
}

TEST(ZtensorTypes, ANumberIsRoundedOnlyWhereItIsText) {
  const Value tenth = Value::real(0.1);
  EXPECT_EQ(ztensor::restore(tenth, "f32"), std::nullopt);
  EXPECT_EQ(ztensor::restore(Value::list({tenth}), "f32[]"), std::nullopt);
  EXPECT_EQ(ztensor::restore(Value::real(0.5), "f32"), Value::real(0.5, DType::f32));
  EXPECT_TRUE(of_text("[0.1]", "f32[]").has_value());
}

TEST(ZtensorTypes, RealsAreOfTheirWidthOrNothing) {
  EXPECT_EQ(of_text("1.5", "f16"), Value::real(1.5, DType::f16));
  EXPECT_EQ(of_text("0.1", "f32"), Value::real(static_cast<double>(0.1F), DType::f32));
  EXPECT_EQ(of_text("inf", "f64"), Value::real(HUGE_VAL));
  EXPECT_EQ(of_text("-inf", "f32"), Value::real(-HUGE_VAL, DType::f32));
  EXPECT_EQ(of_text("-inf", "f16"), Value::real(-HUGE_VAL, DType::f16));
  for (const auto& [stored, sign] : {std::pair{"nan", false}, {"-nan", true}}) {
    const auto value = of_text(stored, "f64");
    ASSERT_TRUE(value.has_value());
    EXPECT_TRUE(std::isnan(*value->as_f64()));
    EXPECT_EQ(std::signbit(*value->as_f64()), sign);
  }
  for (const auto& [stored, type] : {std::pair{"0.1", "f16"},  // f16 cannot represent 0.1
                                     {"70000", "f16"},
                                     {"infinity", "f64"},
                                     {"NaN", "f32"},
                                     {"1e300", "f32"},  // would become infinity
                                     {"3.4028236e+38", "f32"},
                                     {"1e-300", "f32"},  // would become 0
                                     {"", "f64"},
                                     {"1", "bf16"},  // values cannot have this width
                                     {"1", "f8_e4m3"},
                                     {"1", "complex64"}})
    EXPECT_EQ(of_text(stored, type), std::nullopt) << stored << " as " << type;
}

TEST(ZtensorTypes, OnlyTheirOwnTextIsNullOrABool) {
  EXPECT_EQ(of_text("null", "null"), Value());
  EXPECT_EQ(of_text("true", "bool"), Value::boolean(true));
  EXPECT_EQ(of_text("", "null"), std::nullopt);
  EXPECT_EQ(ztensor::restore(Value(), "null"), std::nullopt) << "a null needs no type";
  EXPECT_EQ(of_text("True", "bool"), std::nullopt);
  EXPECT_EQ(of_text("1", "bool"), std::nullopt);
}

TEST(ZtensorTypes, BytesComeOutOfBase64OrNotAtAll) {
  EXPECT_EQ(of_text("AQI=", "bytes"), Value::bytes(to_bytes("\x01\x02")));
  EXPECT_EQ(ztensor::restore(Value::bytes(to_bytes("[1]")), "json"), Value::foreign("json", to_bytes("[1]")));
  EXPECT_EQ(of_text("AQI", "bytes"), std::nullopt);
  EXPECT_EQ(of_text("?", "bytes"), std::nullopt);
  EXPECT_EQ(ztensor::restore(Value::boolean(true), "bytes"), std::nullopt);
  EXPECT_EQ(of_text("AQI=", "xml"), std::nullopt) << "no type of ours";
  EXPECT_EQ(of_text("AQI=", ""), std::nullopt);
  for (const std::string& item : {std::string("\x82\x01"), std::string("\x01\x01"), std::string("\x1c"), std::string()})
    EXPECT_EQ(ztensor::restore(Value::bytes(to_bytes(item)), "cbor"), std::nullopt) << "not exactly one item";
}

TEST(ZtensorTypes, ListsAndMapsAreTheirJson) {
  EXPECT_EQ(of_text(R"([null,true,-3,18446744073709551615,0.5,"x",[],{}])", "list"),
            Value::list({Value(), Value::boolean(true), Value::integer(std::int64_t{-3}),
                         Value::integer(std::uint64_t{UINT64_MAX}), Value::real(0.5), Value::text("x"), Value::list({}),
                         Value::map({})}));
  const auto past_u64 = of_text("[18446744073709551616]", "list");
  ASSERT_TRUE(past_u64.has_value());
  EXPECT_EQ(past_u64->list()[0].kind(), Value::Kind::real);
  for (const char* broken : {"", "[", "[1", "[1,]", "[1]2", "[\"\\u12\"]", "[01]", "[nul]", "[{\"a\":}]", "[[}]", "x"})
    EXPECT_EQ(of_text(broken, "list"), std::nullopt) << broken;
  for (const char* broken : {R"({"a":1,"a":2})", R"({"a")", R"({"a":1)", R"({"a":[1)", "{1:2}", "[]", "1"})
    EXPECT_EQ(of_text(broken, "map"), std::nullopt) << broken;
  EXPECT_EQ(of_text("{}", "list"), std::nullopt);
  EXPECT_EQ(ztensor::restore(Value::list({}), "list"), std::nullopt) << "a list needs no type";
  EXPECT_EQ(of_text(std::string(100, '[') + std::string(100, ']'), "list"), std::nullopt) << "too deep";
  EXPECT_EQ(of_text("[\"" + std::string(1 << 20, 'x') + "\"]", "list"), std::nullopt) << "longer than 1 MiB";
}

TEST(ZtensorTypes, ListsOfNumbersHoldNumbersOnly) {
  EXPECT_EQ(of_text("[1,-2]", "i16[]"), Value::numbers(DType::i16, to_bytes(std::string_view("\x01\0\xfe\xff", 4))));
  EXPECT_EQ(of_text("[true,false]", "bool[]"), Value::numbers(DType::boolean, to_bytes(std::string_view("\x01\0", 2))));
  EXPECT_EQ(of_text("[1.5]", "f16[]"), Value::numbers(DType::f16, to_bytes(std::string_view("\0\x3e", 2))));
  EXPECT_EQ(of_text("[3.4028235e+38]", "f32[]"),
            Value::numbers(DType::f32, to_bytes(std::string_view("\xff\xff\x7f\x7f", 4))));
  EXPECT_EQ(of_text("[1.5]", "f64[]"),
            Value::numbers(DType::f64, to_bytes(std::string_view("\0\0\0\0\0\0\xf8\x3f", 8))));
  EXPECT_EQ(ztensor::restore(Value::list({Value::text("a")}), "text[]")->texts()->blob, "a");
  for (const auto& [stored, type] : {std::pair{R"(["a"])", "f32[]"},
                                     {"[1]", "bool[]"},
                                     {R"(["x"])", "i8[]"},
                                     {"[1.5]", "u8[]"},
                                     {"[1]", "text[]"},
                                     {"{}", "u8[]"},
                                     {"[1", "u8[]"},
                                     {"[1]", "[]"},
                                     {"[1]", "quux[]"},
                                     {"[1]", "text[][]"},
                                     {"[300]", "u8[]"},  // must not be truncated to the width
                                     {"[-1]", "u8[]"},
                                     {"[-129]", "i8[]"},
                                     {"[70000]", "f16[]"},
                                     {"[0.1]", "f16[]"},
                                     {"[1e300]", "f32[]"},
                                     {"[1.5]", "bf16[]"},  // lists cannot have this width
                                     {"[1]", "f8_e4m3[]"},
                                     {"[1]", "complex64[]"}})
    EXPECT_EQ(of_text(stored, type), std::nullopt) << stored << " as " << type;
  EXPECT_EQ(ztensor::restore(Value::integer(std::uint64_t{1}), "u8[]"), std::nullopt);
}

// "cbor <base64>": the text must be the item's own, so that readers without these types see the same value.
TEST(ZtensorTypes, AnItemIsTakenForItsOwnTextOnly) {
  const std::string list = array({number(1), "\xfb\x3f\xe0" + std::string(6, '\0')});
  EXPECT_EQ(of_text("[1,0.5]", item_type(list)), Value::list({Value::integer(std::uint64_t{1}), Value::real(0.5)}));
  EXPECT_EQ(of_text("[1,0.25]", item_type(list)), std::nullopt);
  EXPECT_EQ(ztensor::restore(Value::list({}), item_type(list)), std::nullopt);
  EXPECT_EQ(of_text("[1,0.5]", "cbor !"), std::nullopt);
  EXPECT_EQ(of_text("[1,0.5]", "cbor "), std::nullopt);
  EXPECT_EQ(of_text("[1,0.5]", item_type(list.substr(0, 3))), std::nullopt) << "cut";
  EXPECT_EQ(of_text("[1,0.5]", item_type(list + '\0')), std::nullopt) << "bytes behind it";
  const std::string twice = map({{text("k"), number(1)}, {text("k"), number(1)}});
  EXPECT_EQ(of_text(R"({"k":1,"k":1})", item_type(twice)), std::nullopt) << "a key twice";
  std::string deep = number(1);
  for (int i = 0; i < 100; ++i) deep.insert(deep.begin(), '\x81');
  EXPECT_EQ(of_text("", item_type(deep)), std::nullopt);
}

// The file can hold anything as "weighbridge.types"; nothing changes unless all of it fits.
TEST(ZtensorTypes, TypesThatAreNoTypesChangeNothing) {
  for (const Value& types :
       {Value::integer(std::uint64_t{1}), Value::list({}), Value::map({}), Value::text("{}"), Value::text("{"),
        Value::text("7"), Value::text(R"({"a":"u8","a":"u8"})"), Value::text(R"({"a":1})"),
        Value::map({{"a", Value::integer(std::uint64_t{8})}}), Value::text(R"({"a":"u8","gone":"u8"})"),
        Value::text(R"({"a":"u8","b":"cbor gQ=="})"), Value::text(std::string((1 << 20) + 1, ' '))}) {
    const std::vector<Value::Entry> before{
        {"a", Value::text("7")}, {"b", Value::text("[]")}, {"weighbridge.types", types}};
    auto entries = before;
    ztensor::restore_types(entries);
    EXPECT_EQ(entries, before) << types.to_text().substr(0, 60);
  }
  std::vector<Value::Entry> none;
  ztensor::restore_types(none);
  EXPECT_TRUE(none.empty());
}

TEST(ZtensorTypes, AListOfNarrowElementsIsNoPlainItem) {
  const Value list = Value::list({Value::integer(std::uint64_t{1}, DType::u8)});
  const ztensor::Stated plain = ztensor::state(list, false);
  EXPECT_FALSE(plain.exact);
  EXPECT_EQ(plain.type, "");
  EXPECT_EQ(plain.value, list);
  std::vector<std::string> losses;
  const std::vector<Value::Entry> entries{{"l", list}};
  EXPECT_FALSE(encode_attributes(entries, false, [&](LossKind kind, const Value::Entry& e, std::string_view to) {
                 EXPECT_EQ(kind, LossKind::attribute_type);
                 losses.push_back(e.first + ": " + std::string(to));
               }).empty());
  EXPECT_EQ(losses, std::vector<std::string>{"l: a plain value"});
}

TEST(ZtensorTypes, WhatIsNotUtf8AndTheKeyOfTheTypesAreDropped) {
  std::vector<std::string> losses;
  const auto add_loss = [&](LossKind kind, const Value::Entry& e, std::string_view to) {
    EXPECT_EQ(kind, LossKind::attribute);
    losses.push_back(e.first + ": " + std::string(to));
  };
  const std::vector<Value::Entry> unreadable{{"\xff", Value::text("x")}, {"t", Value::text("\xff")}};
  EXPECT_EQ(encode_attributes(unreadable, true, add_loss), "");
  EXPECT_EQ(losses, (std::vector<std::string>{"t: dropped: it is not UTF-8", "\xff: dropped: it is not UTF-8"}));
  losses.clear();
  const std::vector<Value::Entry> own{{"n", Value::boolean(true)}, {"weighbridge.types", Value::text("mine")}};
  EXPECT_EQ(encode_attributes(own, true, add_loss),
            map({{text("n"), text("true")}, {text("weighbridge.types"), text(R"({"n":"bool"})")}}));
  const std::vector<std::string> dropped{"weighbridge.types: dropped: the key is weighbridge's own"};
  EXPECT_EQ(losses, dropped);
  // Regressions: alone, it left an empty one in the output; if no attribute needs a type, reading used it as the
  // writer's.
  losses.clear();
  const Value::Entry natural{"weighbridge.types", Value::integer(std::uint64_t{1}, DType::u8)};
  EXPECT_EQ(encode_attributes(std::vector{natural}, true, add_loss), "");
  EXPECT_EQ(losses, dropped);
  losses.clear();
  const Value::Entry typed{"a", Value::integer(std::uint64_t{7})},
      types{"weighbridge.types", Value::map({{"a", Value::text("u8")}})};
  EXPECT_EQ(encode_attributes(std::vector{typed, types}, false, add_loss), map({{text("a"), "\x07"}}));
  EXPECT_EQ(losses, dropped);
}

}  // namespace
}  // namespace weighbridge::ztensor1

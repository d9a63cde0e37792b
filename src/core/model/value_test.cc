// SPDX-License-Identifier: Apache-2.0
// Value keeps the container's type, and converts only what it can convert exactly.
#include "weighbridge/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "weighbridge/error.h"

namespace weighbridge {
namespace {

TEST(Value, DefaultIsNull) {
  const Value v;
  EXPECT_EQ(v.kind(), Value::Kind::null);
  EXPECT_EQ(v, Value());
  EXPECT_EQ(v.to_text(), "null");
  EXPECT_FALSE(v.as_text());
}

TEST(Value, IntegersKeepTheirWidthAndTheirExtremes) {
  const Value top = Value::integer(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(top.type(), DType::u64);
  EXPECT_EQ(top.as_u64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(top.as_i64());
  EXPECT_FALSE(top.as_f64()) << "2^64 - 1 is no double";
  EXPECT_EQ(top.to_text(), "18446744073709551615");
  const Value bottom = Value::integer(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(bottom.as_i64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(bottom.as_f64(), -9223372036854775808.0);
  EXPECT_FALSE(bottom.as_u64());
  EXPECT_EQ(Value::integer(std::int64_t{-128}, DType::i8).as_i64(), -128);
  EXPECT_THROW(Value::integer(std::int64_t{-129}, DType::i8), Error);
  EXPECT_THROW(Value::integer(std::uint64_t{256}, DType::u8), Error);
  EXPECT_THROW(Value::integer(std::int64_t{-1}, DType::u32), Error);
  EXPECT_NE(Value::integer(std::uint64_t{1}, DType::u8), Value::integer(std::uint64_t{1}, DType::u16));
}

TEST(Value, RealsCompareByBitsAndPrintShortest) {
  EXPECT_EQ(Value::real(0.1).to_text(), "0.1");
  EXPECT_EQ(Value::real(static_cast<double>(0.1F), DType::f32).to_text(), "0.1");
  EXPECT_NE(Value::real(0.0), Value::real(-0.0));
  EXPECT_EQ(Value::real(std::nan("")), Value::real(std::nan("")));
  EXPECT_THROW(Value::real(0.1, DType::f32), Error);
  EXPECT_EQ(Value::real(65504.0, DType::f16).as_f64(), 65504.0);
  EXPECT_THROW(Value::real(65505.0, DType::f16), Error);
  EXPECT_THROW(Value::real(65536.0, DType::f16), Error);
  EXPECT_EQ(Value::real(std::ldexp(1.0, -24), DType::f16).as_f64(), std::ldexp(1.0, -24)) << "smallest f16 subnormal";
  EXPECT_THROW(Value::real(std::ldexp(1.0, -25), DType::f16), Error);
  EXPECT_EQ(Value::real(1e-12).to_text(), "1e-12");
}

TEST(Value, CanonicalDecimalTextCountsAsItsNumber) {
  EXPECT_EQ(Value::text("42").as_u64(), 42U);
  EXPECT_EQ(Value::text("-42").as_i64(), -42);
  EXPECT_EQ(Value::text("1e-12").as_f64(), 1e-12);
  EXPECT_EQ(Value::text("true").as_bool(), true);
  for (const char* odd : {"", "042", "-0", "+1", " 1", "1 ", "0x10", "18446744073709551616"}) {
    EXPECT_FALSE(Value::text(odd).as_u64()) << odd;
    EXPECT_FALSE(Value::text(odd).as_i64()) << odd;
  }
  EXPECT_FALSE(Value::text("nan").as_f64());
  EXPECT_FALSE(Value::text("1e999").as_f64());
}

TEST(Value, ListsAndMapsPrintAsCompactJson) {
  const Value v = Value::map({{"b", Value::list({Value::integer(std::uint64_t{1}), Value(), Value::text("x\"y")})},
                              {"a", Value::bytes({std::byte{0xff}, std::byte{0}})}});
  EXPECT_EQ(v.to_text(), R"({"b":[1,null,"x\"y"],"a":"/wA="})");
  EXPECT_EQ(v.map()[0].second.list().size(), 3U);
}

TEST(Value, MapsWhoseKeysStandInAnotherOrderAreEqual) {
  const Value::Entry one = {"1/", Value::text("")}, two = {"2", Value::integer(std::int64_t{0})};
  const Value map = Value::map({one, two});
  EXPECT_EQ(map, Value::map({two, one}));
  EXPECT_EQ(Value::list({map}), Value::list({Value::map({two, one})}));
  EXPECT_FALSE(map == Value::map({one}));
  EXPECT_FALSE(map == Value::map({one, {"2", Value::integer(std::int64_t{1})}}));
  EXPECT_FALSE(map == Value::map({one, {"3", Value::integer(std::int64_t{0})}}));
}

TEST(Value, NumbersMustBeWholeElements) {
  EXPECT_THROW(Value::numbers(DType::f32, std::vector<std::byte>(6)), Error);
  const Value v = Value::numbers(DType::u16, {std::byte{1}, std::byte{2}, std::byte{0xff}, std::byte{0xff}});
  EXPECT_EQ(v.to_text(), "[513,65535]");
}

}  // namespace
}  // namespace weighbridge

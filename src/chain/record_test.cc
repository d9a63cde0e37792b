// SPDX-License-Identifier: Apache-2.0
// The grammar of records: what is read back, and what is refused with which rule.
#include "chain/record.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace weighbridge::chain {
using namespace internal;
namespace {

constexpr Key kKeys[] = {
    {"record", Type::choice, true, "test-record"},
    {"bytes", Type::number},
    {"note", Type::text, false},
    {"theta", Type::real, false},
    {"made", Type::time, false},
    {"row.N.name", Type::word},
    {"row.N.dims", Type::dims, false},
    {"token.N", Type::text},
};
constexpr Schema kSchema{"test record", kKeys};
constexpr Schema kLoose{"test record", kKeys, true, true};

std::string rule_of(const Schema& schema, std::string_view bytes) {
  try {
    parse_record(schema, bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::malformed);
    return error.finding().rule + " " + error.finding().message;
  }
  return "none";
}

TEST(Records, AreWrittenInTheOrderOfTheirTableAndReadBack) {
  Record record(kSchema);
  record.set("token.1", "b\n\xFF").set("token.0", " a=\\").set("bytes", std::uint64_t{7}).set("record", "test-record");
  record.set("row.0.dims", "2x3").set("row.1.name", "n1").set("row.0.name", "n0").set_real("theta", 1e-5);
  const std::string text =
      "record=test-record\nbytes=7\ntheta=1e-05\nrow.0.name=n0\nrow.0.dims=2x3\nrow.1.name=n1\n"
      "token.0= a=\\\\\ntoken.1=b\\n\\xff\n";
  EXPECT_EQ(record.text(), text);
  const Record back = parse_record(kSchema, text);
  EXPECT_EQ(back.text(), text);
  EXPECT_EQ(back.get("token.0"), " a=\\");
  EXPECT_EQ(back.get("token.1"), "b\n\xFF");
  EXPECT_EQ(back.number("bytes"), 7U);
  EXPECT_EQ(back.real("theta"), 1e-5);
  EXPECT_EQ(back.dims("row.0.dims"), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(back.rows("row"), 2U);
  EXPECT_EQ(back.rows("token"), 2U);
  EXPECT_EQ(back.rows("bytes"), 0U);
  EXPECT_EQ(back.get("made"), "");
  EXPECT_EQ(back.digest(), sha256_hex(text));
}

TEST(Records, NameWhatTheyRefuse) {
  const std::string head = "record=test-record\nbytes=7\n";
  for (const auto& [bytes, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "chain/missing record:"},
           {head + "bytes=8\n", "chain/duplicate bytes:"},
           {head + "byte=8\n", "chain/key a test record has no key \"byte\""},
           {head + "row.0.size=8\n", "chain/key"},
           {head + "row.00.name=8\n", "chain/key"},
           {head + "row.1000000.name=8\n", "chain/key"},
           {head + "row.1.name=n\n", "chain/missing row.0.name:"},
           {head + "row.0.name=n\nrow.2.name=n\n", "chain/missing row.1.name:"},
           {head + "row.0.dims=2\n", "chain/missing row.0.name:"},
           {head + "row.0.name=n\nrow.0.dims=0\n", "chain/value row.0.dims:"},
           {head + "row.0.name=n\nrow.0.dims=1x1x1x1x1\n", "chain/value"},
           {head + "row.0.name=a b\n", "chain/value row.0.name:"},
           {head + "note=a\\z\n", "chain/value note:"},
           {head + "note=a\tb\n", "chain/value note:"},
           {head + "note=\\x4\n", "chain/value note:"},
           {head + "theta=nan\n", "chain/value theta:"},
           {head + "theta=\n", "chain/value theta:"},
           {head + "made=2026-02-30T00:00:00Z\n", "chain/value made:"},
           {head + "note\n", "chain/line"},
           {head + "# a comment\n", "chain/line"},
           {head + "\n", "chain/line"},
           {head + "note=a\r\n", "chain/line"},
           {head + "note=a", "chain/line the last line"},
           {head + "note=\xFF\n", "chain/utf8"},
           {head + "note=" + std::string(kMaxLine, 'a') + "\n", "chain/line"},
           {std::string(kMaxRecord + 1, '\n'), "chain/size"},
           {"record=other\nbytes=7\n", "chain/value record:"},
           {"record=test-record\nbytes=07\n", "chain/value bytes:"},
           {"record=test-record\nbytes=18446744073709551616\n", "chain/value bytes:"},
           {"record=test-record\n", "chain/missing bytes:"},
       })
    EXPECT_TRUE(rule_of(kSchema, bytes).starts_with(expected)) << expected << "\n" << rule_of(kSchema, bytes);
}

TEST(Records, TakeCommentsAndCrLfOnlyWhereTheirTableSaysSo) {
  const Record record = parse_record(kLoose, "# hello\r\nrecord=test-record\r\n\r\nbytes=7\r\n");
  EXPECT_EQ(record.text(), "record=test-record\nbytes=7\n");
  EXPECT_TRUE(rule_of(kLoose, "record=test-record\r\nbytes=7\n").starts_with("chain/line some lines"));
}

TEST(Records, RefuseToBeWrittenWithWhatTheirTableLacks) {
  Record record(kSchema);
  EXPECT_THROW(record.set("other", "1"), std::logic_error);
  EXPECT_THROW(record.set("bytes", "one"), std::logic_error);
}

TEST(Times, AreThoseGivenOrTheEpochsOrNone) {
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_EQ(stated_time(""), std::nullopt);
  EXPECT_EQ(stated_time("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z");
  EXPECT_THROW(stated_time("yesterday"), Error);
  setenv("SOURCE_DATE_EPOCH", "951782399", 1);
  EXPECT_EQ(stated_time(""), "2000-02-28T23:59:59Z");
  setenv("SOURCE_DATE_EPOCH", "-1", 1);
  EXPECT_THROW(stated_time(""), Error);
  unsetenv("SOURCE_DATE_EPOCH");
}

}  // namespace
}  // namespace weighbridge::chain

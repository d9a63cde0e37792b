// SPDX-License-Identifier: Apache-2.0
// The opcodes that the writer chooses, and that the interpreter reads back what was written.
#include "wire/pickle_writer.h"

#include <gtest/gtest.h>

#include "support/pickles.h"
#include "wire/pickle.h"

namespace weighbridge::wire {
namespace {

using test::read_pickle;
using namespace std::string_literals;

std::string written(const auto& write) {
  PickleWriter out;
  write(out);
  return out.take();
}

TEST(PickleWriter, NumbersTakeTheShortestForm) {
  const std::pair<std::int64_t, std::string> kForms[] = {
      {0, "K\x00"s},
      {255, "K\xff"s},
      {256, "M\x00\x01"s},
      {65535, "M\xff\xff"s},
      {65536, "J\x00\x00\x01\x00"s},
      {-1, "J\xff\xff\xff\xff"s},
      {INT32_MIN, "J\x00\x00\x00\x80"s},
      {std::int64_t{1} << 31, "\x8a\x05\x00\x00\x00\x80\x00"s},
      {-(std::int64_t{1} << 31) - 1, "\x8a\x05\xff\xff\xff\x7f\xff"s},
      {-(std::int64_t{1} << 39), "\x8a\x05\x00\x00\x00\x00\x80"s}};
  for (const auto& [value, form] : kForms)
    EXPECT_EQ(written([&](PickleWriter& out) { out.integer(value); }), "\x80\x02" + form + ".") << value;
}

TEST(PickleWriter, EveryIntegerReadsBack) {
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{127}, std::int64_t{128}, INT64_MAX,
                                   INT64_MIN, std::int64_t{1} << 39, -(std::int64_t{1} << 47) + 1}) {
    const Pickle pickle = read_pickle(written([&](PickleWriter& out) { out.integer(value); }));
    ASSERT_TRUE(pickle.ok()) << value;
    ASSERT_EQ(pickle.kind(pickle.root()), PickleKind::integer) << value;
    EXPECT_EQ(pickle.integer(pickle.root()), value);
  }
  const Pickle large = read_pickle(written([](PickleWriter& out) { out.integer(UINT64_MAX); }));
  EXPECT_EQ(large.kind(large.root()), PickleKind::long_bytes);
  EXPECT_EQ(large.text(large.root()), "\xff\xff\xff\xff\xff\xff\xff\xff\x00"s);
}

TEST(PickleWriter, GlobalsAndCommonTextsAreStoredOnce) {
  const std::string bytes = written([](PickleWriter& out) {
    out.begin();
    for (int i = 0; i < 3; ++i) {
      out.global("torch", "float32");
      out.common_text("cpu");
    }
    out.tuple();
  });
  EXPECT_EQ(bytes,
            "\x80\x02(ctorch\nfloat32\nq\x00X\x03\x00\x00\x00"
            "cpuq\x01h\x00h\x01h\x00h\x01t."s);
  const Pickle pickle = read_pickle(bytes);
  ASSERT_EQ(pickle.tuple(pickle.root()).size(), 6U);
  EXPECT_EQ(pickle.name(pickle.tuple(pickle.root())[4]), "float32");
}

TEST(PickleWriter, TheMemoGrowsBeyondAByte) {
  const std::string bytes = written([](PickleWriter& out) {
    out.begin();
    for (int turn = 0; turn < 2; ++turn)
      for (int i = 0; i < 300; ++i) out.common_text(std::to_string(i));
    out.tuple();
  });
  const Pickle pickle = read_pickle(bytes);
  ASSERT_TRUE(pickle.ok());
  ASSERT_EQ(pickle.tuple(pickle.root()).size(), 600U);
  EXPECT_EQ(pickle.text(pickle.tuple(pickle.root())[599]), "299");
}

TEST(PickleWriter, BytesAreTheirLatin1) {
  EXPECT_EQ(written([](PickleWriter& out) { out.bytes("a\xff\x80"); }),
            "\x80\x02"
            "c_codecs\nencode\nq\x00(X\x05\x00\x00\x00"
            "a\xc3\xbf\xc2\x80X\x06\x00\x00\x00latin1q\x01tR."s);
}

}  // namespace
}  // namespace weighbridge::wire

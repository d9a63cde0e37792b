// SPDX-License-Identifier: Apache-2.0
// What deterministic CBOR is, item by item (examples of RFC 8949, appendix A and section 4.2.1), and that what is made
// so is accepted.
#include "wire/cbor_writer.h"

#include <gtest/gtest.h>

#include <random>

#include "support/rounds.h"

namespace weighbridge::wire {
namespace {

using Kind = DeterministicFault::Kind;

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int v : values) out += static_cast<char>(v);
  return out;
}

std::optional<Kind> kind_of(const std::string& item, std::uint32_t depth = 32) {
  const auto fault = check_deterministic(item, depth);
  return fault ? std::optional(fault->kind) : std::nullopt;
}

TEST(CborDeterministic, AcceptsTheShortestForms) {
  for (const std::string& item : {bytes({0x00}),
                                  bytes({0x17}),
                                  bytes({0x18, 24}),
                                  bytes({0x19, 1, 0}),
                                  bytes({0x1a, 0, 1, 0, 0}),
                                  bytes({0x1b, 0, 0, 0, 1, 0, 0, 0, 0}),
                                  bytes({0x20}),
                                  bytes({0x38, 24}),
                                  bytes({0x41, 7}),
                                  bytes({0x62, 0xc3, 0xbc}),
                                  bytes({0x80}),
                                  bytes({0xa0}),
                                  bytes({0x82, 0x00, 0x81, 0xa0}),
                                  bytes({0xf4}),
                                  bytes({0xf5}),
                                  bytes({0xf6}),
                                  bytes({0xf9, 0x3c, 0x00}),
                                  bytes({0xf9, 0x80, 0x00}),
                                  bytes({0xf9, 0x7c, 0x00}),
                                  bytes({0xf9, 0x7e, 0x00}),
                                  bytes({0xfa, 0x47, 0xc3, 0x50, 0x00}),
                                  bytes({0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a}),
                                  bytes({0xfb, 0x7e, 0x37, 0xe4, 0x3c, 0x88, 0x00, 0x75, 0x9c}),
                                  bytes({0xa3, 0x61, 'b', 0, 0x61, 'c', 0, 0x62, 'a', 'a', 0}),
                                  bytes({0xa2, 0x01, 0, 0x20, 0})})
    EXPECT_EQ(kind_of(item), std::nullopt) << testing::PrintToString(item);
}

TEST(CborDeterministic, NamesEachFault) {
  const std::pair<std::string, Kind> items[] = {
      {"", Kind::malformed},
      {bytes({0x18}), Kind::malformed},
      {bytes({0x00, 0x00}), Kind::malformed},
      {bytes({0x9f, 0xff}), Kind::malformed},
      {bytes({0x1c}), Kind::malformed},
      {bytes({0xc0, 0x00}), Kind::malformed},
      {bytes({0xf7}), Kind::malformed},
      {bytes({0xf8, 0xff}), Kind::malformed},
      {bytes({0xe0}), Kind::malformed},
      {bytes({0x61, 0xff}), Kind::malformed},
      {bytes({0x62, 'a'}), Kind::malformed},
      {bytes({0x82, 0x00}), Kind::malformed},
      {bytes({0xbb, 0x80, 0, 0, 0, 0, 0, 0, 1}), Kind::malformed},
      {bytes({0x18, 23}), Kind::not_deterministic},
      {bytes({0x19, 0, 255}), Kind::not_deterministic},
      {bytes({0x1a, 0, 0, 255, 255}), Kind::not_deterministic},
      {bytes({0x1b, 0, 0, 0, 0, 255, 255, 255, 255}), Kind::not_deterministic},
      {bytes({0x78, 1, 'a'}), Kind::not_deterministic},
      {bytes({0xf9, 0x7e, 0x01}), Kind::not_deterministic},
      {bytes({0xf9, 0xfe, 0x00}), Kind::not_deterministic},
      {bytes({0xfa, 0x3f, 0x80, 0, 0}), Kind::not_deterministic},
      {bytes({0xfa, 0x7f, 0xc0, 0, 0}), Kind::not_deterministic},
      {bytes({0xfa, 0x7f, 0x80, 0, 0}), Kind::not_deterministic},
      {bytes({0xfb, 0x40, 0x59, 0, 0, 0, 0, 0, 0}), Kind::not_deterministic},
      {bytes({0xfb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0}), Kind::not_deterministic},
      {bytes({0xa2, 0x61, 'b', 0, 0x61, 'a', 0}), Kind::not_deterministic},
      {bytes({0xa2, 0x62, 'a', 'a', 0, 0x61, 'b', 0}), Kind::not_deterministic},
      {bytes({0xa2, 0x61, 'a', 0, 0x61, 'a', 0}), Kind::duplicate_key},
      {bytes({0xa2, 0x81, 0x01, 0, 0x81, 0x01, 0}), Kind::duplicate_key},
  };
  for (const auto& [item, kind] : items) EXPECT_EQ(kind_of(item), kind) << testing::PrintToString(item);
}

TEST(CborDeterministic, CountsOpenArraysAndMaps) {
  const std::string at_limit = std::string(32, '\x81') + '\0', over = std::string(33, '\x81') + '\0';
  EXPECT_EQ(kind_of(at_limit), std::nullopt);
  EXPECT_EQ(kind_of(over), Kind::too_deep);
  EXPECT_EQ(check_deterministic(over, 32)->offset, 32U);
  EXPECT_TRUE(make_deterministic(at_limit, 32));
  EXPECT_FALSE(make_deterministic(over, 32));
}

TEST(CborDeterministic, MakesWhatItAccepts) {
  EXPECT_EQ(make_deterministic(bytes({0xa2, 0x61, 'b', 0x18, 5, 0x61, 'a', 0xfa, 0x3f, 0x80, 0, 0}), 32),
            bytes({0xa2, 0x61, 'a', 0xf9, 0x3c, 0, 0x61, 'b', 5}));
  EXPECT_EQ(make_deterministic(bytes({0xfb, 0xff, 0xf8, 0, 0, 0, 0, 0, 1}), 32), bytes({0xf9, 0x7e, 0}));
  EXPECT_EQ(make_deterministic(bytes({0x9f, 0x01, 0xff}), 32), bytes({0x81, 1}));
  EXPECT_FALSE(make_deterministic(bytes({0xc0, 0x00}), 32));
  EXPECT_FALSE(make_deterministic(bytes({0xf7}), 32));
  EXPECT_FALSE(make_deterministic(bytes({0xbf, 0x61, 'a', 0, 0x61, 'a', 1, 0xff}), 32));
  // Random bytes: whatever has a deterministic form is accepted in that form, which is its own form.
  std::mt19937 random(3);
  int made = 0;
  const int all = test::rounds(20'000);
  for (int i = 0; i < all; ++i) {
    std::string item(1 + random() % 12, '\0');
    for (char& c : item) c = static_cast<char>(random());
    const auto form = make_deterministic(item, 8);
    const bool is = !check_deterministic(item, 8);
    EXPECT_TRUE(!is || form == item) << testing::PrintToString(item);
    if (!form) continue;
    ++made;
    EXPECT_FALSE(check_deterministic(*form, 8)) << testing::PrintToString(item);
  }
  EXPECT_GT(made, all / 80);
}

}  // namespace

}  // namespace weighbridge::wire

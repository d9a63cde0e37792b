// SPDX-License-Identifier: Apache-2.0
// Boolean bytes and packed codes.
#include "codecs/cast.h"

#include <gtest/gtest.h>

#include <vector>

namespace weighbridge::codecs {
namespace {

TEST(Bools, NormalizesEveryByteValue) {
  std::vector<std::byte> data(256);
  for (std::size_t i = 0; i < 256; ++i) data[i] = static_cast<std::byte>(i);
  normalize_bools(data);
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(data[i], i == 0 ? std::byte{0} : std::byte{1});
}

TEST(Codes, LieLeastSignificantBitsFirst) {
  const std::vector<std::byte> four{std::byte{0x1}, std::byte{0x2}, std::byte{0xF}};
  std::vector<std::byte> packed(2);
  pack_codes(4, four, packed);
  EXPECT_EQ(packed, (std::vector<std::byte>{std::byte{0x21}, std::byte{0x0F}}));
  const std::vector<std::byte> six{std::byte{0x3F}, std::byte{0x00}, std::byte{0x3F}, std::byte{0x01}};
  packed.assign(3, std::byte{0});
  pack_codes(6, six, packed);
  EXPECT_EQ(packed, (std::vector<std::byte>{std::byte{0x3F}, std::byte{0xF0}, std::byte{0x07}}));
}

TEST(Codes, ComeBackAtEveryCount) {
  for (const std::uint32_t bits : {2u, 4u, 6u})
    for (std::size_t count = 0; count < 20; ++count) {
      std::vector<std::byte> codes(count), back(count), packed((count * bits + 7) / 8);
      for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::byte>((i * 11 + 5) & ((1u << bits) - 1));
      pack_codes(bits, codes, packed);
      unpack_codes(bits, packed, back);
      EXPECT_EQ(back, codes) << bits << " bits, " << count;
    }
}

}  // namespace
}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
#include "codecs/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace weighbridge::codecs {
namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 131);
  return out;
}

Digest160 sha1(std::span<const std::byte> data) {
  Sha1 sum;
  sum.update(data);
  return sum.finish();
}

// The digests are those of Python's hashlib, at the lengths where padding changes.
TEST(Sha1, KnownDigests) {
  EXPECT_EQ(to_hex(sha1(std::as_bytes(std::span("abc", 3)))), "a9993e364706816aba3e25717850c26c9cd0d89d");
  const std::pair<std::size_t, const char*> known[] = {
      {0, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},   {3, "4f6563ca938c3e40578254b1d963bba48efe5508"},
      {55, "336243d03df910f7914a14b13dd85f56c140660c"},  {56, "f5cc93d5593579203ae8f3fc497baabf4fdfb417"},
      {63, "dba1c0f21c62eea4b5d19857487ded0db6095343"},  {64, "4360095a2eea45a13a83190aeb049821aee57f46"},
      {65, "c0cfbc1b7f847964bf5e51ded17c7d0e2c0f4555"},  {119, "99d71c308a6c094af624067e6db56482f887356f"},
      {120, "7b28fac5d8b376e2adc48146a698aea886e48f83"}, {1000, "2b17933db7d0d704dffa93b5a37d063e1eef3b84"}};
  for (const auto& [size, digest] : known) EXPECT_EQ(to_hex(sha1(pattern(size))), digest) << size;
}

TEST(Sha1, PiecesOfAnyLengthGiveTheSame) {
  const auto data = pattern(1000);
  for (const std::size_t step : {1U, 7U, 63U, 64U, 65U, 999U}) {
    Sha1 sum;
    for (std::size_t at = 0; at < data.size(); at += step)
      sum.update(std::span(data).subspan(at, std::min(step, data.size() - at)));
    EXPECT_EQ(sum.finish(), sha1(data)) << step;
  }
}

}  // namespace
}  // namespace weighbridge::codecs

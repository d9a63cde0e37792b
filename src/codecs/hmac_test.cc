// SPDX-License-Identifier: Apache-2.0
// The test cases of RFC 4231.
#include "codecs/checksum.h"

#include <gtest/gtest.h>

namespace weighbridge::codecs {
namespace {

std::string hmac(const std::string& key, const std::string& data) {
  return to_hex(hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(data))));
}

TEST(Hmac, IsThatOfRfc4231) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, MacsDifferByOneBitOrByLength) {
  const std::string a = "0123", b = "0122", c = "012";
  const auto same = [](const std::string& x, const std::string& y) {
    return same_mac(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)));
  };
  EXPECT_TRUE(same(a, a));
  EXPECT_FALSE(same(a, b));
  EXPECT_FALSE(same(a, c));
}

}  // namespace
}  // namespace weighbridge::codecs

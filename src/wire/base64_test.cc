// SPDX-License-Identifier: Apache-2.0
// Base64 against RFC 4648, section 10, and the texts that a strict decoder refuses.
#include "wire/base64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "wire/json_writer.h"

namespace weighbridge::wire {
namespace {

using namespace std::string_view_literals;

TEST(Base64, MatchesTheVectorsOfRfc4648) {
  const std::array<std::string_view, 7> plain = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
  const std::array<std::string_view, 7> coded = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(encode_base64(std::as_bytes(std::span(plain[i]))), coded[i]);
    const auto decoded = decode_base64(coded[i]);
    ASSERT_TRUE(decoded);
    EXPECT_TRUE(std::ranges::equal(*decoded, std::as_bytes(std::span(plain[i]))));
  }
  JsonWriter out;
  out.bytes(std::as_bytes(std::span("\xFB\xFF"sv)));
  EXPECT_EQ(out.text(), "\"+/8=\"");
}

TEST(Base64, RefusesWhatItWouldNotWrite) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zg===", "====", "=", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zm9-",
                                      "Zg==Zg==", "Z===", "\x80mZv"})
    EXPECT_FALSE(decode_base64(text)) << text;
}

}  // namespace
}  // namespace weighbridge::wire

// SPDX-License-Identifier: Apache-2.0
// The portable version against published vectors and class Sha256, which uses OpenSSL where these tests are built.
#include "codecs/sha256_portable.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "support/random.h"

namespace weighbridge::codecs {
namespace {

using test::noise;

Digest256 portable(std::span<const std::byte> data) {
  PortableSha256 hash;
  hash.update(data);
  return hash.finish();
}

TEST(PortableSha256, GivesThePublishedDigests) {
  // The examples of FIPS 180-4, as published by NIST, and a million times "a".
  const std::string million(1'000'000, 'a');
  const std::pair<std::string_view, std::string_view> vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, digest] : vectors)
    EXPECT_EQ(to_hex(portable(std::as_bytes(std::span(text)))), digest) << text.size() << " bytes";
}

TEST(PortableSha256, EqualsTheOtherAtEveryLength) {
  const auto data = noise(400);
  for (std::size_t size = 0; size <= 300; ++size) {
    const auto piece = std::span(data).subspan(size % 67, size);
    ASSERT_EQ(portable(piece), sha256(piece)) << size << " bytes";
  }
}

TEST(PortableSha256, TakesPiecesOfAnySizeAndIsReusable) {
  const auto data = noise(300);
  const Digest256 expected = sha256(data);
  PortableSha256 hash;
  for (std::size_t first = 0; first <= data.size(); ++first)
    for (const std::size_t second :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}}) {
      const std::size_t middle = std::min(first + second, data.size());
      hash.reset();
      hash.update(std::span(data).first(first));
      hash.update(std::span(data).subspan(first, middle - first));
      hash.update(std::span(data).subspan(middle));
      ASSERT_EQ(hash.finish(), expected) << first << " and " << second << " bytes";
    }
}

TEST(PortableSha256, GivesTheSameByTheProcessorsInstructions) {
  const Sha256Compress hardware = sha256_hardware();
  if (hardware == nullptr) GTEST_SKIP() << "this processor has none for SHA-256";
  const auto data = noise(400);
  for (std::size_t size = 0; size <= 300; ++size) {
    const auto piece = std::span(data).subspan(size % 67, size);
    PortableSha256 hash(hardware);
    hash.update(piece);
    ASSERT_EQ(hash.finish(), portable(piece)) << size << " bytes";
    hash.reset();
    hash.update(piece.first(size / 2));
    hash.update(piece.subspan(size / 2));
    ASSERT_EQ(hash.finish(), portable(piece)) << size << " bytes, in two";
  }
}

}  // namespace
}  // namespace weighbridge::codecs

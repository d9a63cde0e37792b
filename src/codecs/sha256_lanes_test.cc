// SPDX-License-Identifier: Apache-2.0
// Hashing in lanes against OpenSSL, the paths against each other, and published vectors.
#include "codecs/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "support/random.h"

namespace weighbridge::codecs {
namespace {

using test::noise;
using Bytes = std::vector<std::byte>;
using Message = std::span<const std::byte>;

constexpr std::array kPaths{ShaPath::automatic, ShaPath::single, ShaPath::portable, ShaPath::vectors};

// The results of Sha256, one message at a time.
std::vector<Digest256> one_by_one(Message prefix, std::span<const Message> messages) {
  std::vector<Digest256> out;
  for (const Message message : messages) {
    Sha256 hash;
    hash.update(prefix);
    hash.update(message);
    out.push_back(hash.finish());
  }
  return out;
}

std::vector<Digest256> each(Message prefix, std::span<const Message> messages, ShaPath path) {
  std::vector<Digest256> out(messages.size());
  sha256_each(prefix, messages, out, path);
  return out;
}

TEST(Sha256Each, GivesThePublishedDigests) {
  // The examples of FIPS 180-4, as published by NIST, and a million times "a".
  const std::string million(1'000'000, 'a');
  const std::array<std::pair<std::string_view, std::string_view>, 5> vectors{
      {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
       {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
       {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
       {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrs"
        "tu",
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
       {million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}}};
  std::vector<Message> messages;
  for (const auto& [text, digest] : vectors) messages.push_back(std::as_bytes(std::span(text)));
  for (const ShaPath path : kPaths) {
    const auto found = each({}, messages, path);
    for (std::size_t i = 0; i < vectors.size(); ++i) EXPECT_EQ(to_hex(found[i]), vectors[i].second) << i;
  }
}

TEST(Sha256Each, EveryPathAgreesOnEveryLengthAroundTheBordersOfBlocks) {
  const Bytes data = noise(4096);
  for (const std::size_t prefix_size : {0U, 8U, 64U, 100U}) {
    const Message prefix = Message(data).first(prefix_size);
    std::vector<Message> messages;
    for (std::size_t size = 0; size <= 200; ++size) messages.push_back(Message(data).subspan(size * 7, size));
    const auto expected = one_by_one(prefix, messages);
    for (const ShaPath path : kPaths) EXPECT_EQ(each(prefix, messages, path), expected) << static_cast<int>(path);
  }
}

TEST(Sha256Each, TakesAnyNumberOfMessagesOfOneLength) {
  const Bytes data = noise(5000);
  for (const std::size_t size : {0U, 55U, 56U, 64U, 1000U})
    for (std::size_t count = 0; count <= 40; ++count) {
      std::vector<Message> messages;
      for (std::size_t i = 0; i < count; ++i) messages.push_back(Message(data).subspan(i * 97, size));
      const auto expected = one_by_one({}, messages);
      for (const ShaPath path : kPaths)
        ASSERT_EQ(each({}, messages, path), expected)
            << count << " of " << size << " bytes, path " << static_cast<int>(path);
    }
}

TEST(Sha256Each, TakesMessagesOfUnequalLengthsInAnyOrder) {
  const Bytes data = noise(300'000);
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    std::vector<Message> messages(random() % 41);
    for (Message& message : messages) {
      const std::size_t maximum = std::size_t{1} << random() % 18;
      message = Message(data).subspan(random() % 1000, random() % (maximum + 1));
    }
    const Message prefix = Message(data).last(random() % 130);
    const auto expected = one_by_one(prefix, messages);
    for (const ShaPath path : kPaths) ASSERT_EQ(each(prefix, messages, path), expected) << "round " << round;
  }
}

TEST(Sha256Each, TakesPiecesOfAnySize) {
  const Bytes data = noise(100'000);
  std::vector<Message> messages;
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < 37; ++i) {
    messages.push_back(Message(data).subspan(i, 90'000 - i * i * 61));
    lengths.push_back(messages.back().size());
  }
  const auto expected = one_by_one(Message(data).first(8), messages);
  for (const ShaPath path : kPaths) {
    std::mt19937 random(7);
    std::vector<std::size_t> taken(messages.size());
    std::vector<Bytes> rooms(messages.size());  // overwritten by the next call for the same message
    const auto next = [&](std::size_t i) -> Message {
      EXPECT_LT(taken[i], messages[i].size());
      const std::size_t maximum = random() % 3 == 0 ? 100 : 20'000;
      const Message piece =
          messages[i].subspan(taken[i], std::min(1 + random() % maximum, messages[i].size() - taken[i]));
      taken[i] += piece.size();
      rooms[i].assign(piece.begin(), piece.end());
      return rooms[i];
    };
    std::vector<Digest256> found(messages.size());
    sha256_each(Message(data).first(8), lengths, next, found, path);
    EXPECT_EQ(found, expected) << static_cast<int>(path);
  }
}

TEST(Sha256Each, PassesOnWhatThePiecesThrow) {
  const Bytes data = noise(1000);
  const std::vector<std::uint64_t> lengths(20, 100'000);
  std::vector<Digest256> out(lengths.size());
  for (const ShaPath path : kPaths) {
    int calls = 0;
    const auto next = [&](std::size_t) -> Message {
      if (++calls == 50) throw std::runtime_error("enough");
      return data;
    };
    EXPECT_THROW(sha256_each({}, lengths, next, out, path), std::runtime_error);
  }
}

}  // namespace
}  // namespace weighbridge::codecs

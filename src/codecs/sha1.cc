// SPDX-License-Identifier: Apache-2.0
// SHA-1, one block of 64 bytes at a time.
#include "codecs/checksum.h"

#include <algorithm>
#include <bit>

#include "base/endian.h"

namespace weighbridge::codecs {

namespace {

void add_block(std::array<std::uint32_t, 5>& state, const std::byte* bytes) noexcept {
  std::uint32_t words[80];
  for (std::size_t i = 0; i < 16; ++i) words[i] = base::load_be<std::uint32_t>(bytes + 4 * i);
  for (std::size_t i = 16; i < 80; ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < 80; ++i) {
    const std::uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                                : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                                : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                         : (b ^ c ^ d) + 0xCA62C1D6;
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::uint32_t sums[] = {a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += sums[i];
}

}  // namespace

void Sha1::compress(const std::byte* data, std::size_t blocks) noexcept {
  for (; blocks > 0; --blocks, data += ShaBlocks::kSize) add_block(state_, data);
}

void Sha1::update(std::span<const std::byte> data) noexcept {
  blocks_.update(data, [this](const std::byte* from, std::size_t blocks) { compress(from, blocks); });
}

Digest160 Sha1::finish() noexcept {
  blocks_.finish([this](const std::byte* from, std::size_t blocks) { compress(from, blocks); });
  Digest160 out;
  for (std::size_t i = 0; i < state_.size(); ++i) base::store_be(out.data() + 4 * i, state_[i]);
  return out;
}

// RFC 2104, section 2.

Digest256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> data) {
  constexpr std::size_t kBlock = 64;
  std::array<std::byte, kBlock> padded{};
  if (key.size() > kBlock) {
    std::ranges::copy(sha256(key), padded.begin());
  } else {
    std::ranges::copy(key, padded.begin());
  }
  const auto hash = [&](std::byte pad, std::span<const std::byte> bytes) {
    std::array<std::byte, kBlock> block = padded;
    for (std::byte& each : block) each ^= pad;
    Sha256 sha;
    sha.update(block);
    sha.update(bytes);
    return sha.finish();
  };
  return hash(std::byte{0x5c}, hash(std::byte{0x36}, data));
}

bool same_mac(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  if (a.size() != b.size()) return false;
  std::byte differs{0};
  for (std::size_t i = 0; i < a.size(); ++i) differs |= a[i] ^ b[i];
  return differs == std::byte{0};
}

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// SHA-1, one block of 64 bytes at a time.
#include "codecs/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/endian.h"

namespace weighbridge::codecs {

void Sha1::block(const std::byte* bytes) noexcept {
  std::uint32_t words[80];
  for (std::size_t i = 0; i < 16; ++i) words[i] = base::load_be<std::uint32_t>(bytes + 4 * i);
  for (std::size_t i = 16; i < 80; ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  auto [a, b, c, d, e] = state_;
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
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += sums[i];
}

void Sha1::update(std::span<const std::byte> data) noexcept {
  total_ += data.size();
  while (!data.empty()) {
    if (used_ == 0 && data.size() >= held_.size()) {
      block(data.data());
      data = data.subspan(held_.size());
      continue;
    }
    const std::size_t n = std::min(data.size(), held_.size() - used_);
    std::memcpy(held_.data() + used_, data.data(), n);
    data = data.subspan(n);
    if ((used_ += n) < held_.size()) return;
    block(held_.data());
    used_ = 0;
  }
}

Digest160 Sha1::finish() noexcept {
  const std::uint64_t bits = total_ * 8;
  constexpr std::size_t kLengthAt = 56;
  std::array<std::byte, 72> rest{std::byte{0x80}};
  const std::size_t zeros = (used_ < kLengthAt ? kLengthAt : kLengthAt + held_.size()) - used_;
  for (std::size_t i = 0; i < 8; ++i) rest[zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span(rest).first(zeros + 8));
  Digest160 out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

Digest160 sha1(std::span<const std::byte> data) noexcept {
  Sha1 sum;
  sum.update(data);
  return sum.finish();
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

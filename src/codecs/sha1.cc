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

}  // namespace weighbridge::codecs

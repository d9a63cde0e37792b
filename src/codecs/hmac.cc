// SPDX-License-Identifier: Apache-2.0
// RFC 2104, section 2.
#include "codecs/checksum.h"

#include <algorithm>
#include <array>

namespace weighbridge::codecs {

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

// SPDX-License-Identifier: Apache-2.0
// Parses and names digests.
#include "core/part_digest.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "codecs/checksum.h"

namespace weighbridge::core {

DigestText parse_digest(std::string_view text) noexcept {
  constexpr std::string_view kSha = "sha256:", kCrc = "crc32c:", kCrcPrefix = "crc32c:0x";
  if (text.starts_with(kSha)) {
    std::array<std::byte, 32> value;
    const std::string_view digits = text.substr(kSha.size());
    if (codecs::from_hex(digits, value)) return {.kind = PartDigest::sha256, .digits = digits};
    return {.problem = "sha256: and 64 hexadecimal digits"};
  }
  if (text.starts_with(kCrc)) {
    const std::string_view digits = text.substr(std::min(text.size(), kCrcPrefix.size()));
    if (text.starts_with(kCrcPrefix) && codecs::u32_from_hex(digits))
      return {.kind = PartDigest::crc32c, .digits = digits};
    return {.problem = "crc32c:0x and 8 hexadecimal digits"};
  }
  return {};
}

PartDigest digest_of(std::string_view option) noexcept {
  if (option == "sha256") return PartDigest::sha256;
  if (option == "crc32c") return PartDigest::crc32c;
  return PartDigest::none;
}

std::string placeholder(PartDigest digest) {
  if (digest == PartDigest::none) return {};
  if (digest == PartDigest::crc32) return "crc32:0x00000000";
  return digest == PartDigest::sha256 ? "sha256:" + std::string(64, '0') : "crc32c:0x00000000";
}

}  // namespace weighbridge::core

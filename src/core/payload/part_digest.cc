// SPDX-License-Identifier: Apache-2.0
// Parses and names digests.
#include "core/payload/part_digest.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace weighbridge::core {

DigestText parse_decoded_digest(std::string_view text) noexcept {
  const auto is_hex = [](std::string_view digits) {
    return !digits.empty() &&
           std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  };
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view algorithm = text.substr(0, colon), digits = text.substr(std::min(colon + 1, text.size()));
  const bool named = !algorithm.empty() && std::ranges::all_of(algorithm, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  });
  if (!named || !is_hex(digits)) return {.problem = "an algorithm, a colon and lower-case hexadecimal digits"};
  if (algorithm == "xxh3")
    return digits.size() == 16 ? DigestText{.kind = PartDigest::xxh3, .digits = digits}
                               : DigestText{.problem = "xxh3: and 16 hexadecimal digits"};
  if (algorithm == "sha256")
    return digits.size() == 64 ? DigestText{.kind = PartDigest::decoded_sha256, .digits = digits}
                               : DigestText{.problem = "sha256: and 64 hexadecimal digits"};
  return {};
}

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
  if (digest == PartDigest::xxh3) return "xxh3:" + std::string(16, '0');
  return digest == PartDigest::sha256 || digest == PartDigest::decoded_sha256 ? "sha256:" + std::string(64, '0')
                                                                              : "crc32c:0x00000000";
}

}  // namespace weighbridge::core

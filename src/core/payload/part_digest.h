// SPDX-License-Identifier: Apache-2.0
// The text of a part's digest, as in zTensor 0.1 and 1.x: "sha256:" and 64 hexadecimal digits, or "crc32c:0x" and 8, in
// upper or lower case (readings Z2, Y2). Also computes one digest of bytes in order; content.h computes several at
// once.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codecs/checksum.h"

namespace weighbridge::core {

// Of the stored bytes, or of the bytes before the encoding, without Payload::stream_prefix.
enum class PartDigest : std::uint8_t {
  none,
  sha256,
  crc32c,
  crc32,           // of the bytes before the encoding, as the ones that follow
  xxh3,            // 64 bits
  decoded_sha256,  // spelled like sha256
};

struct DigestText {
  PartDigest kind = PartDigest::none;  // none: no text, an unknown algorithm, or malformed
  std::string_view digits{};           // of the text
  std::string_view problem{};          // for a known algorithm with malformed digits: what was expected
};
DigestText parse_digest(std::string_view text) noexcept;
// The same for zTensor 2, whose digests are of the decoded bytes: "xxh3:" and 16 lower-case digits, or "sha256:"
// and 64.
DigestText parse_decoded_digest(std::string_view text) noexcept;

// The prefix of the name of a Checksum that covers another file; that file's name follows.
inline constexpr std::string_view kFileChecksum = "file ";

// The kind with this name in Options::digest; none for any other.
PartDigest digest_of(std::string_view option) noexcept;
// A text of the same length as any digest of the kind, for layouts that count bytes; empty for none.
std::string placeholder(PartDigest);

// The digest of bytes in zTensor's notation ("sha256:...", "crc32c:0x...", "crc32:0x...", "xxh3:..."); empty for
// none.
class Digester {
 public:
  explicit Digester(PartDigest kind) : kind_(kind) {
    if (kind == PartDigest::sha256 || kind == PartDigest::decoded_sha256) sha_.emplace();
    if (kind == PartDigest::xxh3) xxh3_.emplace();
  }
  void update(std::span<const std::byte> data) {
    if (sha_) sha_->update(data);
    if (xxh3_) xxh3_->update(data);
    if (is_crc(kind_)) crc_ = codecs::crc(crc_kind(kind_), data, crc_);
  }
  std::string finish() {
    if (sha_) return "sha256:" + codecs::to_hex(sha_->finish());
    if (xxh3_) return "xxh3:" + codecs::to_hex(xxh3_->finish());
    return is_crc(kind_) ? spell(kind_, crc_) : std::string();
  }
  // Whether the digest covers the bytes before the encoding.
  bool of_decoded() const noexcept { return kind_ >= PartDigest::crc32; }

  // Whether its bytes must be hashed in order; pieces of a CRC can be combined.
  static bool is_serial(PartDigest kind) noexcept { return kind != PartDigest::none && !is_crc(kind); }

  static bool is_crc(PartDigest kind) noexcept { return kind == PartDigest::crc32c || kind == PartDigest::crc32; }
  static codecs::CrcKind crc_kind(PartDigest kind) noexcept {
    return kind == PartDigest::crc32 ? codecs::CrcKind::crc32 : codecs::CrcKind::crc32c;
  }
  static std::string spell(PartDigest kind, std::uint32_t crc) {
    return (kind == PartDigest::crc32 ? "crc32:0x" : "crc32c:0x") + codecs::to_hex(crc);
  }

 private:
  PartDigest kind_;
  std::optional<codecs::Sha256> sha_;
  std::optional<codecs::Xxh3_64> xxh3_;
  std::uint32_t crc_ = 0;
};

}  // namespace weighbridge::core

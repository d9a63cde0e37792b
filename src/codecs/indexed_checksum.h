// SPDX-License-Identifier: Apache-2.0
// The custom u64 checksum of SLM ("File Checksum", "Tokenizer Checksum"). The specification gives seed, rotation and
// multiplier, but not how the index of a byte enters; reading M1 decides that here.
//
// M1: h = rotl64(h ^ (byte + i), 7) * 0x100000001b3, i counted from 0. Each step needs the previous one, so it takes
// five cycles per byte (xor, rotate, multiply) on any processor; neither threads nor wider instructions make it faster.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weighbridge::codecs {

inline constexpr std::uint64_t kSlmFileSeed = 0x9e3779b97f4a7c15U;
inline constexpr std::uint64_t kSlmTokenizerSeed = 0x746f6b656e697a65U;

// Takes pieces of any size; the split does not affect the result.
class IndexedChecksum {
 public:
  explicit IndexedChecksum(std::uint64_t seed = kSlmFileSeed) noexcept : value_(seed) {}
  void update(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_, index_ = 0;
};

std::uint64_t indexed_checksum(std::span<const std::byte> bytes, std::uint64_t seed = kSlmFileSeed) noexcept;
// "0x" and 16 hexadecimal digits, the form that `inspect` shows.
std::string checksum_text(std::uint64_t value);

}  // namespace weighbridge::codecs

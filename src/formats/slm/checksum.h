// SPDX-License-Identifier: Apache-2.0
// The custom u64 checksum of SLM ("File Checksum", "Tokenizer Checksum", reading M1), in the one place where its open
// point lives: the specification publishes seed, rotation and multiplier, but not how the index of a byte enters.
//
// M1: h = rotl64(h ^ (byte + i), 7) * 0x100000001b3, i counted from 0. Each step needs the one before: five cycles a
// byte (xor, rotate, multiply) on any processor, so no thread and no wider instruction makes it faster.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weighbridge/source.h"

namespace weighbridge::slm {

inline constexpr std::uint64_t kFileSeed = 0x9e3779b97f4a7c15U;
inline constexpr std::uint64_t kTokenizerSeed = 0x746f6b656e697a65U;

// Fed in pieces of any size: the result is that of all bytes in one.
class Checksum {
 public:
  explicit Checksum(std::uint64_t seed = kFileSeed) noexcept : value_(seed) {}
  void update(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_, index_ = 0;
};

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t seed) noexcept;
inline std::uint64_t tokenizer_checksum(std::string_view section) noexcept {
  return checksum_of(std::as_bytes(std::span(section)), kTokenizerSeed);
}
// "0x" and 16 hexadecimal digits, as people and `inspect` see checksums.
std::string checksum_text(std::uint64_t value);

// Files up to this size are summed again in the other forms when M1's does not match.
inline constexpr std::uint64_t kMostForOtherForms = std::uint64_t{64} << 20;
// [reads] Which other plausible reading of the index gives `stated` for this file, bytes 100..108 taken as zero: a
// foreign writer's form, worth naming although the file stays invalid. nullopt: none.
std::optional<std::string_view> other_form(const Source&, std::uint64_t stated);

}  // namespace weighbridge::slm

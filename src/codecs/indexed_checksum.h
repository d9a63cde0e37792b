// SPDX-License-Identifier: Apache-2.0
// The custom u64 checksum of SLM ("File Checksum", "Tokenizer Checksum"). The specification gives seed, rotation and
// multiplier, but not how the index of a byte enters; reading M1 decides that here and names the other plausible forms.
//
// M1: h = rotl64(h ^ (byte + i), 7) * 0x100000001b3, i counted from 0. Each step needs the previous one, so it takes
// five cycles per byte (xor, rotate, multiply) on any processor; neither threads nor wider instructions make it faster.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weighbridge::codecs {

inline constexpr std::uint64_t kSlmFileSeed = 0x9e3779b97f4a7c15U;
inline constexpr std::uint64_t kSlmTokenizerSeed = 0x746f6b656e697a65U;

// How the index enters. `add` is the reading; files in the others are read on request only.
enum class ChecksumForm : std::uint8_t { add, exclusive_or, add_golden, exclusive_or_golden, sum, add_shifted };
struct NamedChecksumForm {
  ChecksumForm form;
  std::string_view name, formula;
};
// In the order of the enumerators.
inline constexpr std::array<NamedChecksumForm, 6> kChecksumForms = {
    {{ChecksumForm::add, "add", "h ^ (byte + i)"},
     {ChecksumForm::exclusive_or, "xor", "h ^ (byte ^ i)"},
     {ChecksumForm::add_golden, "add-golden", "h ^ (byte + i * 0x9e3779b97f4a7c15)"},
     {ChecksumForm::exclusive_or_golden, "xor-golden", "h ^ (byte ^ (i * 0x9e3779b97f4a7c15))"},
     {ChecksumForm::sum, "sum", "h + byte + i"},
     {ChecksumForm::add_shifted, "add-shifted", "h ^ (byte + (i << 8))"}}};
// nullopt for a name that is not in the table.
std::optional<ChecksumForm> checksum_form(std::string_view name) noexcept;

// Takes pieces of any size; the split does not affect the result.
class IndexedChecksum {
 public:
  explicit IndexedChecksum(std::uint64_t seed = kSlmFileSeed, ChecksumForm form = ChecksumForm::add) noexcept
      : value_(seed), form_(form) {}
  void update(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_, index_ = 0;
  ChecksumForm form_;
};

std::uint64_t indexed_checksum(std::span<const std::byte> bytes, std::uint64_t seed = kSlmFileSeed,
                               ChecksumForm form = ChecksumForm::add) noexcept;
// "0x" and 16 hexadecimal digits, the form that `inspect` shows.
std::string checksum_text(std::uint64_t value);

}  // namespace weighbridge::codecs

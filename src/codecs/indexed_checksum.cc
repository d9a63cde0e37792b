// SPDX-License-Identifier: Apache-2.0
// The checksum of reading M1, and its other forms.
#include "codecs/indexed_checksum.h"

#include <algorithm>
#include <bit>

#include "codecs/checksum.h"

namespace weighbridge::codecs {

namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

// `fold` returns h with one byte and its index.
template <class Fold>
std::uint64_t advance(std::uint64_t h, std::uint64_t& index, std::span<const std::byte> bytes, Fold fold) noexcept {
  std::uint64_t i = index;
  for (const std::byte byte : bytes)
    h = std::rotl(fold(h, std::to_integer<std::uint64_t>(byte), i++), 7) * std::uint64_t{0x100000001b3};
  index = i;
  return h;
}

}  // namespace

std::optional<ChecksumForm> checksum_form(std::string_view name) noexcept {
  const auto found = std::ranges::find(kChecksumForms, name, &NamedChecksumForm::name);
  return found == kChecksumForms.end() ? std::nullopt : std::optional(found->form);
}

void IndexedChecksum::update(std::span<const std::byte> bytes) noexcept {
  using U = std::uint64_t;
  const auto with = [&](auto fold) { value_ = advance(value_, index_, bytes, fold); };
  switch (form_) {
    case ChecksumForm::add: return with([](U h, U byte, U i) { return h ^ (byte + i); });
    case ChecksumForm::exclusive_or: return with([](U h, U byte, U i) { return h ^ byte ^ i; });
    case ChecksumForm::add_golden: return with([](U h, U byte, U i) { return h ^ (byte + i * kGolden); });
    case ChecksumForm::exclusive_or_golden: return with([](U h, U byte, U i) { return h ^ byte ^ (i * kGolden); });
    case ChecksumForm::sum: return with([](U h, U byte, U i) { return h + byte + i; });
    case ChecksumForm::add_shifted: return with([](U h, U byte, U i) { return h ^ (byte + (i << 8)); });
  }
}

std::uint64_t indexed_checksum(std::span<const std::byte> bytes, std::uint64_t seed, ChecksumForm form) noexcept {
  IndexedChecksum sum(seed, form);
  sum.update(bytes);
  return sum.value();
}

std::string checksum_text(std::uint64_t value) { return "0x" + to_hex(value); }

}  // namespace weighbridge::codecs

// SPDX-License-Identifier: Apache-2.0
// Other plausible forms of reading M1's checksum.
#include "formats/slm/checksum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "formats/slm/layout.h"

namespace weighbridge::slm {
namespace {

constexpr std::uint64_t kPrime = 0x100000001b3U;
constexpr int kRotation = 7;

constexpr std::uint64_t mix(std::uint64_t h) noexcept { return std::rotl(h, kRotation) * kPrime; }

constexpr std::array<std::string_view, 5> kForms = {
    "byte ^ i", "byte + i * 0x9e3779b97f4a7c15", "byte ^ (i * 0x9e3779b97f4a7c15)", "h + byte + i", "byte + (i << 8)"};

// Advances every other form by one byte.
void step(std::array<std::uint64_t, kForms.size()>& h, std::uint64_t byte, std::uint64_t i) noexcept {
  h[0] = mix(h[0] ^ (byte ^ i));
  h[1] = mix(h[1] ^ (byte + i * kFileSeed));
  h[2] = mix(h[2] ^ (byte ^ (i * kFileSeed)));
  h[3] = mix(h[3] + byte + i);
  h[4] = mix(h[4] ^ (byte + (i << 8)));
}

}  // namespace

std::optional<std::string_view> other_form(const Source& source, std::uint64_t stated) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 18;
  std::array<std::uint64_t, kForms.size()> h;
  h.fill(kFileSeed);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPiece, source.size())));
  for (std::uint64_t at = 0; at < source.size();) {
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(std::min(kPiece, source.size() - at)));
    source.read_at(at, piece);
    if (at == 0) std::ranges::fill(piece.subspan(kChecksumAt, kChecksumSize), std::byte{0});
    for (const std::byte byte : piece) step(h, std::to_integer<std::uint64_t>(byte), at++);
  }
  const auto fits = std::ranges::find(h, stated);
  if (fits == h.end()) return std::nullopt;
  return kForms[static_cast<std::size_t>(fits - h.begin())];
}

}  // namespace weighbridge::slm

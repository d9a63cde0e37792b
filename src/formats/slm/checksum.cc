// SPDX-License-Identifier: Apache-2.0
// Looks for the form of a checksum.
#include "formats/slm/content.h"

#include <algorithm>
#include <vector>

#include "formats/slm/layout.h"

namespace weighbridge::slm_format {

const codecs::NamedChecksumForm* other_form(const Source& source, std::uint64_t stated, ChecksumForm taken) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 18;
  std::vector<Checksum> sums;
  for (const auto& known : codecs::kChecksumForms) sums.emplace_back(kFileSeed, known.form);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPiece, source.size())));
  for (std::uint64_t at = 0; at < source.size(); at += buffer.size()) {
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(std::min(kPiece, source.size() - at)));
    source.read_at(at, piece);
    if (at == 0) std::ranges::fill(piece.subspan(kChecksumAt, kChecksumSize), std::byte{0});
    for (Checksum& sum : sums) sum.update(piece);
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (codecs::kChecksumForms[i].form != taken && sums[i].value() == stated) return &codecs::kChecksumForms[i];
  return nullptr;
}

}  // namespace weighbridge::slm_format

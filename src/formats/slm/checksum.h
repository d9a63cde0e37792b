// SPDX-License-Identifier: Apache-2.0
// The checksums of an .slm file ("File Checksum", "Tokenizer Checksum"): the seeds, and the explanation of a mismatch.
// codecs/indexed_checksum.h has the function and describes what the specification leaves open about it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "codecs/indexed_checksum.h"
#include "weighbridge/source.h"

namespace weighbridge::slm {

using codecs::checksum_text;
using Checksum = codecs::IndexedChecksum;
inline constexpr std::uint64_t kFileSeed = codecs::kSlmFileSeed;

inline std::uint64_t tokenizer_checksum(std::string_view section) noexcept {
  return codecs::indexed_checksum(std::as_bytes(std::span(section)), codecs::kSlmTokenizerSeed);
}

// If M1's form does not match, files up to this size are summed again in the other forms.
inline constexpr std::uint64_t kMostForOtherForms = std::uint64_t{64} << 20;
// [reads] The other plausible reading of the index that gives `stated` for this file, with bytes 100..108 as zero;
// nullopt if none does. The message names it, because another writer may use that form. The file stays invalid.
std::optional<std::string_view> other_form(const Source&, std::uint64_t stated);

}  // namespace weighbridge::slm

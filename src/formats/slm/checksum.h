// SPDX-License-Identifier: Apache-2.0
// The checksums of an .slm file ("File Checksum", "Tokenizer Checksum"): the seeds, and the explanation of a mismatch.
// codecs/indexed_checksum.h has the function and describes what the specification leaves open about it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "codecs/indexed_checksum.h"
#include "weighbridge/source.h"

namespace weighbridge::slm_format {

using codecs::checksum_text;
using codecs::ChecksumForm;
using Checksum = codecs::IndexedChecksum;
inline constexpr std::uint64_t kFileSeed = codecs::kSlmFileSeed;

inline std::uint64_t tokenizer_checksum(std::string_view section, ChecksumForm form = ChecksumForm::add) noexcept {
  return codecs::indexed_checksum(std::as_bytes(std::span(section)), codecs::kSlmTokenizerSeed, form);
}

// If the checksum does not match, files up to this size are summed again in the other forms.
inline constexpr std::uint64_t kMostForOtherForms = std::uint64_t{64} << 20;
// [reads] The form other than `taken` that gives `stated` for this file, with bytes 100..108 as zero; null if none
// does. The message names it, because another writer may use that form. The file stays invalid unless the caller asks
// for it.
const codecs::NamedChecksumForm* other_form(const Source&, std::uint64_t stated, ChecksumForm taken);

}  // namespace weighbridge::slm_format

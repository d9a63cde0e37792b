// SPDX-License-Identifier: Apache-2.0
// The checksums of an .slm file ("File Checksum", "Tokenizer Checksum"). The function itself, and its open point, are
// in codecs/indexed_checksum.h; here are the seeds' names and what to say when a file's checksum does not match.
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

// Files up to this size are summed again in the other forms when M1's does not match.
inline constexpr std::uint64_t kMostForOtherForms = std::uint64_t{64} << 20;
// [reads] Which other plausible reading of the index gives `stated` for this file, bytes 100..108 taken as zero: a
// foreign writer's form, worth naming although the file stays invalid. nullopt: none.
std::optional<std::string_view> other_form(const Source&, std::uint64_t stated);

}  // namespace weighbridge::slm

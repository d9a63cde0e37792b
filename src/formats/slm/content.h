// SPDX-License-Identifier: Apache-2.0
// The rules that need the whole file: the file checksum, finite values, positive scales (reading M2). Also owns the
// seeds of the checksums, and the explanation of a mismatch.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codecs/indexed_checksum.h"
#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "formats/slm/scan.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::slm_format {

// The result of one pass over a file: its checksum with bytes 100..108 as zero, and the first bad value of each range.
struct PayloadSums {
  std::uint64_t checksum = 0;
  std::vector<BadValue> bad;
};
// [reads] With two threads, one computes the serial checksum while the other reads ahead and checks values, so the
// checksum alone limits the speed. The file must have at least a header. Throws Error{io}, Cancelled.
PayloadSums sum_payload(const Source&, std::vector<ValueRange> ranges, const Context&,
                        codecs::ChecksumForm = codecs::ChecksumForm::add);

// Does that pass for a file that was read, and reports its findings: the checksum first, then values by offset.
// `stated` is the header's checksum; the walker has already reported a 0. Throws Error{io}, Cancelled, core::Stop.
void check_payload(const core::Draft&, const Source&, std::uint64_t stated, const Context&, core::Findings&);

// The finding of a bad value.
Finding bad_value_finding(const BadValue&, const Source&, std::string_view tensor);

// The checksums of an .slm file ("File Checksum", "Tokenizer Checksum"): the seeds, and the explanation of a mismatch.
// codecs/indexed_checksum.h has the function and describes what the specification leaves open about it.

using codecs::checksum_text, codecs::ChecksumForm;
using Checksum = codecs::IndexedChecksum;
inline constexpr std::uint64_t kFileSeed = codecs::kSlmFileSeed;

inline std::uint64_t tokenizer_checksum(std::string_view section, ChecksumForm form = ChecksumForm::add) noexcept {
  return codecs::indexed_checksum(std::as_bytes(std::span(section)), codecs::kSlmTokenizerSeed, form);
}

// If the checksum does not match, files up to this size are summed again in the other forms.
inline constexpr std::uint64_t kMaxForOtherForms = std::uint64_t{64} << 20;
// [reads] The form other than `taken` that gives `stated` for this file, with bytes 100..108 as zero; null if none
// does. The message names it, because another writer may use that form. The file stays invalid unless the caller asks
// for it.
const codecs::NamedChecksumForm* other_form(const Source&, std::uint64_t stated, ChecksumForm taken);

}  // namespace weighbridge::slm_format

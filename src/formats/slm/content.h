// SPDX-License-Identifier: Apache-2.0
// The rules that need the whole file: the file checksum, finite values, positive scales (reading M2).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/draft.h"
#include "core/findings.h"
#include "formats/slm/scan.h"
#include "weighbridge/context.h"

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

}  // namespace weighbridge::slm_format

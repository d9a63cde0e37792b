// SPDX-License-Identifier: Apache-2.0
// What only reading the whole file can tell: the file checksum, finite values, positive scales (reading M2).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/draft.h"
#include "core/findings.h"
#include "formats/slm/scan.h"
#include "weighbridge/context.h"

namespace weighbridge::slm {

// What one pass over a file finds: its checksum, bytes 100..108 taken as zero, and the first bad value of each range.
struct PayloadSums {
  std::uint64_t checksum = 0;
  std::vector<BadValue> bad;
};
// [reads] The chain runs on one thread while another reads ahead and looks at values, where the executor has two: what
// is left is the speed of the chain. The file has a header at least. Throws Error{io}, Cancelled.
PayloadSums sum_payload(const Source&, std::vector<ValueRange> ranges, const Context&);

// That pass for a file that was read, and its findings: the checksum first, then values by offset. `stated` is the
// header's checksum; of 0 the walker has spoken already. Throws Error{io}, Cancelled, core::Stop.
void check_payload(const core::Draft&, const Source&, std::uint64_t stated, const Context&, core::Findings&);

// The finding of a bad value.
Finding bad_value_finding(const BadValue&, const Source&, std::string_view tensor);

}  // namespace weighbridge::slm

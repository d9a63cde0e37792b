// SPDX-License-Identifier: Apache-2.0
// The content rules that every format shares: digests, encodings that must decode, bool bytes. Owns
// verify's single pass over the payload. Formats own the rules and what a digest covers.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/findings.h"
#include "core/format.h"
#include "core/progress.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/share.h"

namespace weighbridge::core {

// What to check of one stored part. A null rule skips that check.
struct PartJob {
  Tensor tensor;                         // named in findings
  Part part;                             // has an extent
  PartDigest digest = PartDigest::none;  // any but crc32
  std::string_view expected{};           // 64, 16 or 8 hexadecimal digits in either case
  const Rule* digest_rule = nullptr;     // the digest differs
  const Rule* bool_rule = nullptr;       // a decoded byte is neither 0 nor 1
  const Rule* encoding_rule = nullptr;   // the part does not decode to exactly Part::size() bytes (reading G1)
};

// Reads the stored bytes of every part once, from several threads, and appends findings in no particular order. Memory
// does not grow with the payload, except for a codec's window. Parts with equal extents and sizes are read once; empty
// raw parts are not read. Only the parts of the share are read; the stored bytes of all are added to the progress.
// Throws Error{io}, Cancelled.
void check_parts(std::span<const PartJob>, const Context&, Progress&, std::vector<Finding>& out, const Share& = {});
// The same with its own Progress, for a job that does nothing else.
void check_parts(std::span<const PartJob>, const Context&, std::vector<Finding>& out);
// What check_parts() adds to the progress; counts each alias.
std::uint64_t stored_bytes(std::span<const PartJob>) noexcept;

// The order in which content findings are reported: by file, offset (none first), then rule, then tensor.
void sort_findings(std::vector<Finding>&);
// Reports them in that order.
void report_sorted(std::vector<Finding>, Findings&);

}  // namespace weighbridge::core

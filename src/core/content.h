// SPDX-License-Identifier: Apache-2.0
// The content rules that every format shares: digests of stored bytes, encodings that must decode, bool bytes. Owns the
// one pass over the payload that verify makes; leaves the rules themselves, and what a digest covers, to the formats.
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

namespace weighbridge::core {

// What is to be checked of one stored part. A null rule means: not this.
struct PartJob {
  Tensor tensor;                         // whom the findings name
  Part part;                             // has an extent
  PartDigest digest = PartDigest::none;  // over the stored bytes
  std::string_view expected{};           // its hexadecimal digits in either case, 64 or 8 of them
  const Rule* digest_rule = nullptr;     // the digest is another one
  const Rule* bool_rule = nullptr;       // a decoded byte is neither 0 nor 1
  const Rule* encoding_rule = nullptr;   // what does not decode to exactly Part::size() bytes (reading G1)
};

// Reads the stored bytes of every part once, from several threads and in memory that does not grow with the payload (a
// codec's window apart), and appends findings in no particular order. Parts with equal extents and sizes are read once
// between them; an empty raw part is not read at all. Adds the stored bytes it has done to the progress. Throws
// Error{io}, Cancelled.
void check_parts(std::span<const PartJob>, const Context&, Progress&, std::vector<Finding>& out);
// The same for a job that is nothing but this.
void check_parts(std::span<const PartJob>, const Context&, std::vector<Finding>& out);
// What check_parts adds to the progress, aliases counted each.
std::uint64_t stored_bytes(std::span<const PartJob>) noexcept;

// The order in which content findings are reported: by file, offset (none first), then rule, then tensor.
void sort_findings(std::vector<Finding>&);

}  // namespace weighbridge::core

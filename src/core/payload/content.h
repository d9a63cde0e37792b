// SPDX-License-Identifier: Apache-2.0
// The content rules that all formats share: digests, encodings that must decode, bool bytes. Owns verify's single pass
// over the payload. Formats own the rules and say what a digest covers.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/progress.h"
#include "core/payload/part_digest.h"
#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/share.h"

namespace weighbridge::core {

// Which tensors are sparse, and the content rules for them, for every container that has some.

// The roles of their parts. The values come first.
inline constexpr std::string_view kValues = "values", kIndices = "indices", kIndptr = "indptr", kCoords = "coords";

// Whether this build reads it as a sparse tensor, whose dense form may be far larger than the file.
bool is_sparse(const Tensor&) noexcept;

// The container's own rules.
struct SparseRules {
  const Rule& indptr;           // the row bounds do not ascend from 0 to the number of values
  const Rule& index_range;      // an index lies outside the shape
  const Rule& duplicate;        // several entries for one element
  const Rule& unchecked;        // duplicates (and the order) were not looked for, for lack of memory
  const Rule* order = nullptr;  // the column indices of a row do not ascend; null: they need not
};

// Reads the indices of all sparse tensors, several tensors at once, and appends findings in no particular order. Adds
// sparse_bytes() to the progress. Throws Error{io}, Cancelled.
void check_sparse(const Model&, const SparseRules&, const Context&, Progress&, std::vector<Finding>& out);
// The stored bytes of their index parts.
std::uint64_t sparse_bytes(const Model&) noexcept;

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

// The content rules of containers whose index states digests of parts: the generations of zTensor.

struct StatedRules {
  DigestText (*parse)(std::string_view) noexcept;  // a digest as the index has it
  const Rule& digest;                              // the bytes do not match it
  const Rule& encoding;                            // a part does not decode to its size
  const Rule* boolean;                             // a bool is neither 0 nor 1; null: it may be any byte
  SparseRules sparse;
};

// Checks all parts and sparse structures, then calls `more` for the container's own rules, and reports everything in
// order. Of several shares each checks some parts, and the first the rest. Parts that are cut from one blob are checked
// once, as the tensor's main part. Throws Error{io}, Cancelled.
void check_stated(const Model&, const StatedRules&, const Share&, const Context&, Findings&,
                  const std::function<void(Progress&, std::vector<Finding>&)>& more);

// Format::check_content of a format that has check_share: the check by one process.
template <void (*CheckShare)(const Model&, const Share&, const Context&, Findings&)>
void check_alone(const Model& model, const Context& context, Findings& findings) {
  CheckShare(model, {}, context, findings);
}

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// The descriptor of EMBD for the registry, the functions that it points to, and its rules. Also owns the one pass that
// sums both checksums.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include "core/model/progress.h"
#include "core/reading/format.h"
#include "weighbridge/context.h"

namespace weighbridge::embd {

namespace rules {
#define WB_RULES "formats/embd/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
// Checks the two checksums over payload (reading E1).
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

// The CRC-32 of the tensor data and of the file, both from one pass over the bytes.

struct Sums {
  std::uint32_t data = 0, file = 0;
};

// The ranges to sum: data is [data_begin, data_end), the file is [0, end). data_begin <= data_end <= end.
struct Summed {
  std::uint64_t data_begin = 0, data_end = 0, end = 0;
  std::size_t piece = 0;  // the least that is worth a read
};

using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte>)>;

// The executor's threads read and sum pieces, which are then combined in order: the result does not depend on the
// number of threads. Throws what `read` throws, and Cancelled.
Sums sum(const Summed&, const ReadAt& read, Executor&, core::Progress&);

}  // namespace weighbridge::embd

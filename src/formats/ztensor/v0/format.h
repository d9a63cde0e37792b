// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 0.1 for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::ztensor0 {

namespace rules {
#define WB_RULES "formats/ztensor/v0/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// Whether the file begins like any version of the 0.x line. The walker reports versions that it does not read.
bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_share(const Model&, const Share&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::ztensor0

// SPDX-License-Identifier: Apache-2.0
// The descriptor of STB for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::stb {

namespace rules {
#define WB_RULES "formats/stb/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::stb

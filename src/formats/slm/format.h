// SPDX-License-Identifier: Apache-2.0
// The descriptor of SLM for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::slm_format {

namespace rules {
#define WB_RULES "formats/slm/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// Whether the file starts with SLM1.
bool matches(const core::Probe&);
// Reads the structure and then, unless the draft asks for Checks::structure, makes the one pass over the file that
// reading M2 requires for loading.
void read(const Source&, const Context&, core::Findings&, core::Draft&);
// Makes that pass for a model that was opened without it; does nothing for other models.
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::slm_format

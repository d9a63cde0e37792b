// SPDX-License-Identifier: Apache-2.0
// What SLM is to the registry, and the functions that its descriptor is made of.
#pragma once
#include <vector>

#include "core/corpus_case.h"
#include "core/format.h"

namespace weighbridge::slm {

extern const core::Format kFormat;

// The file starts with SLM1.
bool matches(const core::Glance&);
// Structure, and, unless the draft asks for Checks::structure, the one pass over the file that reading M2 makes part of
// loading.
void read(const Source&, const Context&, core::Findings&, core::Draft&);
// That pass for a model that was opened without it; nothing for others.
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&);

// The corpus: at least one file for each rule. In cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::slm

// SPDX-License-Identifier: Apache-2.0
// What EMBD is to the registry, and the functions that its descriptor is made of.
#pragma once
#include <vector>

#include "core/corpus_case.h"
#include "core/format.h"

namespace weighbridge::embd {

extern const core::Format kFormat;

bool matches(const core::Glance&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
// The two checksums over payload (reading E1).
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&);

// The corpus: at least one file for each rule. In cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::embd

// SPDX-License-Identifier: Apache-2.0
// What zTensor 0.1 is to the registry, and the functions that its descriptor is made of.
#pragma once
#include <vector>

#include "core/corpus_case.h"
#include "core/format.h"

namespace weighbridge::ztensor0 {

extern const core::Format kFormat;

// The file begins as every version of the 0.x line does: the walker says what is wrong with another one.
bool matches(const core::Glance&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&);

// The corpus: at least one file for each rule. In cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::ztensor0

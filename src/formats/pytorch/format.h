// SPDX-License-Identifier: Apache-2.0
// The descriptor of PyTorch's checkpoints for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::pytorch {

namespace rules {
#define WB_RULES "formats/pytorch/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

void read(const Source&, const Context&, core::Findings&, core::Draft&);
// Whether the file is the index of a model in shards.
bool spans_files(const core::Probe&);
void read_files(const core::ReadJob&, core::Draft&);
// Remarks that the file is one of several shards.
void warn_alone(const Place&, const Context&, core::Findings&, core::Draft&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
void check_content(const Model&, const Context&, core::Findings&);
// Only what loading the pickles of a file would do, of any file that holds some, or is packed
// (core/archive/pickle_scan.h).
void check_pickles(const Source&, const Context&, core::Findings&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::pytorch

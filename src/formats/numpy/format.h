// SPDX-License-Identifier: Apache-2.0
// The descriptors of npy and npz for the registry, and the functions that they point to.
#pragma once
#include <vector>

#include "core/format.h"

namespace weighbridge::core {
struct CorpusCase;
}

namespace weighbridge::numpy {

extern const core::Format kNpy, kNpz;

void read_npy(const Source&, const Context&, core::Findings&, core::Draft&);
void read_npz(const Source&, const Context&, core::Findings&, core::Draft&);
core::WriteLayout layout_npy(const Model&, const Options&);
core::WriteLayout layout_npz(const Model&, const Options&);
void check_npy(const Model&, const Context&, core::Findings&);
void check_npz(const Model&, const Context&, core::Findings&);

// The corpora: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> npy_cases();
std::vector<core::CorpusCase> npz_cases();

}  // namespace weighbridge::numpy

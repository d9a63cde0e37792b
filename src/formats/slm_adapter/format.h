// SPDX-License-Identifier: Apache-2.0
// Adapter packages for SLM models: ADP1, ASP1 and ALR1. This folder reads and writes packages; runtime/llama applies
// them to a model.
#pragma once
#include "core/reading/format.h"
#include "formats/slm_adapter/layout.h"

namespace weighbridge::slm_adapter {

namespace rules {
#define WB_RULES "formats/slm_adapter/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);

// One delta to write. `parts` are in the order of the kind's payloads.
struct Delta {
  std::uint64_t name_hash = 0;
  std::vector<std::uint64_t> dims;
  std::uint64_t count = 0;    // elements (dense), stored deltas (sparse) or inner rank (low-rank)
  std::vector<Tensor> parts;  // dense tensors whose f32 (indices: u64) elements are the payloads
};
// The layout of a package with these deltas. The tensors of `delta.parts` must outlive the layout.
core::WriteLayout package_layout(Kind, const Identity&, const std::vector<Delta>&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::slm_adapter

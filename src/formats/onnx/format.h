// SPDX-License-Identifier: Apache-2.0
// The descriptor of ONNX for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::onnx {

namespace rules {
#define WB_RULES "formats/onnx/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

bool matches(const core::Probe&);
// Whether the file is a TensorProto by itself, as data sets of tests are. A ModelProto never is one.
bool is_tensor(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::onnx

// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 1.x for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::ztensor1 {

namespace rules {
#define WB_RULES "formats/ztensor/v1/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// Whether the magic number is at the start or the end of the file.
bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_share(const Model&, const Share&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept);
core::WriteLayout append(const Model& target, const Model& more, const Options&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::ztensor1

// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 1.x for the registry, and the functions that it points to.
#pragma once
#include <vector>

#include "core/format.h"

namespace weighbridge::core {
struct CorpusCase;
}

namespace weighbridge::ztensor1 {

extern const core::Format kFormat;

// Whether the magic number is at the start or the end of the file.
bool matches(const core::Glance&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_share(const Model&, const Share&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&);
std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept);
core::WriteLayout append(const Model& target, const Model& more, const Options&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::ztensor1

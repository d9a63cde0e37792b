// SPDX-License-Identifier: Apache-2.0
// The descriptor of zTensor 2 for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"
#include "weighbridge/hash.h"

namespace weighbridge::ztensor2 {

namespace rules {
#define WB_RULES "formats/ztensor/v2/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// Whether the magic number is at the start or the end of the file.
bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_share(const Model&, const Share&, const Context&, core::Findings&);
// The folder of a model in shards: model.zt, with model-00001-of-00003.zt and so on beside it.
void read_files(const core::ReadJob&, core::Draft&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
core::WriteLayout layout_files(const Model&, const Options&, const Context& = {});
// The content digest of 6.4 with SHA-256, as the file's manifest has it. Throws Error{misuse} where it is undefined: a
// part without a digest, or a model that is not an opened file of this format.
Digest content_identity(const Model&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::ztensor2

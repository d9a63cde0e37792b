// SPDX-License-Identifier: Apache-2.0
// What safetensors is to the registry, and the functions that its descriptor is made of.
#pragma once
#include <vector>

#include "core/corpus_case.h"
#include "core/format.h"

namespace weighbridge::safetensors {

extern const core::Format kFormat;

// The first bytes look like a header: a length that safetensors allows and the brace that must follow it.
bool matches(const core::Glance&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
// Shards by their index, or the one file of a folder.
bool spreads(const core::Glance&);
void read_files(const core::Opening&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&);
core::WriteLayout layout_files(const Model&, const Options&);

// Upon a shard that is opened by itself, beside its index.
void remark(const Place&, core::Findings&);

// The corpus: at least one file for each rule. In cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::safetensors

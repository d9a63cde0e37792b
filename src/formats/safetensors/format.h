// SPDX-License-Identifier: Apache-2.0
// The descriptor of safetensors for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::safetensors {

namespace rules {
#define WB_RULES "formats/safetensors/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// Whether a file begins with a length that safetensors allows and a brace, or is an index; or whether a folder has
// model.safetensors or an index.
bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
// Whether the model lies in several files: shards with an index, or a folder.
bool spans_files(const core::Probe&);
void read_files(const core::ReadJob&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
core::WriteLayout layout_files(const core::Inner&, const Options&, const Context& = {});
std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept);

// Parts of a header: texts under __metadata__, nothing for none; one tensor's entry, its offsets from the data on.
void append_metadata(std::string& json, std::span<const std::pair<std::string_view, std::string>> texts);
void append_entry(std::string& json, const Tensor&, std::string_view dtype, std::uint64_t begin, std::uint64_t end);

// Warns about a shard that is opened by itself although its index lies beside it.
void warn_alone(const Place&, const Context&, core::Findings&, core::Draft&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::safetensors

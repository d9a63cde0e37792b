// SPDX-License-Identifier: Apache-2.0
// The descriptor of GGUF for the registry, the functions that it points to, and its rules.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::gguf {

namespace rules {
#define WB_RULES "formats/gguf/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// "NAME-00002-of-00005.gguf"
bool is_part(std::string_view file) noexcept;
// Whether a file begins with the magic number.
bool matches(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);

// Split models (split.cc): whether this is one of their files, reading the model from all files, and the warning about
// a file whose name does not say so.
bool spans_files(const core::Probe&);
void read_files(const core::ReadJob&, core::Draft&);
void warn_alone(const Place&, const Context&, core::Findings&, core::Draft&);

// Whether Options::quantize can ask for it: a block type that can be encoded, or a smaller dtype.
bool quantizes_to(std::string_view type) noexcept;
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
std::optional<core::NewHeader> new_header(const Model& original, const Model& edited,
                                          std::span<const std::uint32_t> kept);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::gguf

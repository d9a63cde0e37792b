// SPDX-License-Identifier: Apache-2.0
// What a llama2.c checkpoint is to the registry, and the functions that its descriptor is made of.
#pragma once
#include <optional>
#include <vector>

#include "core/corpus_case.h"
#include "core/format.h"
#include "formats/llama2c/layout.h"

namespace weighbridge::llama2c {

extern const core::Format kFormat;

// The file has no magic: its seven integers are sound, and its length is exactly what they ask for; or it is of a later
// version, which has one.
bool matches(const core::Glance&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);

// kHeaderSize bytes.
Header load_header(const std::byte*) noexcept;
// Of a file with this header, whose fields are within their bounds and whose heads divide.
std::uint64_t file_size(const Header&) noexcept;
// Reports what is wrong with the fields by themselves and against each other.
bool check_fields(const Header&, core::Findings&);

// The corpus: at least one file for each rule. In cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

}  // namespace weighbridge::llama2c

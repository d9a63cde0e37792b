// SPDX-License-Identifier: Apache-2.0
// The descriptor of llama2.c checkpoints for the registry, the functions that it points to, and its rules. Also reads
// the tokenizer file beside a checkpoint.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "formats/llama2c/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::llama2c {

namespace rules {
#define WB_RULES "formats/llama2c/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

extern const core::Format kFormat;

// The legacy layout has no magic: its seven integers must be valid and must match the file's length. Later versions,
// which have a magic, match too.
bool matches(const core::Probe&);
// Whether at most one of its first seven integers cannot be such a one: a damaged checkpoint, not another kind of file.
bool plausible(const core::Probe&);
void read(const Source&, const Context&, core::Findings&, core::Draft&);
void check_content(const Model&, const Context&, core::Findings&);

// The size of a file with this header, which must have passed check_fields().
std::uint64_t file_size(const Header&) noexcept;
// Reports fields that are out of range or contradict each other. True if there are none.
bool check_fields(const Header&, core::Findings&);

// The corpus: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> cases();

// Reads llama2.c's tokenizer file into a Tokenizer of kind bpe (reading M14): tokens with scores become tokens with
// merges.

// The default name of a checkpoint's tokenizer file: "stories.bin" gives "stories.tokenizer".
std::string tokenizer_name(std::string_view checkpoint);

// [reads] The file must hold exactly `vocab_size` tokens. On the first error, reports it and returns nullopt.
std::optional<Tokenizer> read_tokenizer_file(const Source&, std::uint32_t vocab_size, const Limits&, core::Findings&);

}  // namespace weighbridge::llama2c

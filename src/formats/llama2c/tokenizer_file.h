// SPDX-License-Identifier: Apache-2.0
// llama2.c's tokenizer file into a Tokenizer of kind bpe (reading M14): tokens with scores into tokens with merges.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge::llama2c {

// Where a tokenizer file lies that nobody names: "stories.bin" gives "stories.tokenizer".
std::string tokenizer_name(std::string_view checkpoint);

// [reads] Reports the first error and gives nothing then. The file holds exactly `vocab_size` tokens.
std::optional<Tokenizer> read_tokenizer_file(const Source&, std::uint32_t vocab_size, const Limits&, core::Findings&);

}  // namespace weighbridge::llama2c

// SPDX-License-Identifier: Apache-2.0
// Reads llama2.c's tokenizer file into a Tokenizer of kind bpe (reading M14): tokens with scores become tokens with
// merges.
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

// The default name of a checkpoint's tokenizer file: "stories.bin" gives "stories.tokenizer".
std::string tokenizer_name(std::string_view checkpoint);

// [reads] The file must hold exactly `vocab_size` tokens. On the first error, reports it and returns nullopt.
std::optional<Tokenizer> read_tokenizer_file(const Source&, std::uint32_t vocab_size, const Limits&, core::Findings&);

}  // namespace weighbridge::llama2c

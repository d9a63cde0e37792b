// SPDX-License-Identifier: Apache-2.0
// Reads the BPE tokenizer of a Llama folder from tokenizer.json into a Tokenizer that encodes the same way (readings
// M11, M14), or into the nearest one, with a description of the difference.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/huggingface/json_file.h"
#include "weighbridge/model.h"

namespace weighbridge::huggingface {

// What config.json states about the vocabulary.
struct Declared {
  std::optional<std::uint64_t> vocab_size, bos, eos, pad;
};

struct BytePairs {
  Tokenizer tokenizer;
  std::string unheld;  // what merges cannot express, as clauses joined by "; "; empty if nothing
};

// `model` is the "model" of `file`, whose type is BPE; `config` is tokenizer_config.json. nullopt if the tokenizer is
// broken, which has been reported.
std::optional<BytePairs> read_byte_pairs(Reading&, const JsonObject& file, const JsonObject& model,
                                         const std::optional<JsonObject>& config, const Declared&);

}  // namespace weighbridge::huggingface

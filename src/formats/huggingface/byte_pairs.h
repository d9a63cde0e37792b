// SPDX-License-Identifier: Apache-2.0
// Reads the BPE tokenizer of a Llama folder from tokenizer.json into a Tokenizer that encodes the same way, by its
// merges (readings M11, M14) and the rules beside them, or into the nearest one, with a description of the difference.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/huggingface/json_file.h"
#include "tokenizers/tokenizer_rules.h"
#include "weighbridge/model.h"

namespace weighbridge::huggingface {

// Facts about the vocabulary in config.json.
struct Declared {
  std::optional<std::uint64_t> vocab_size, bos, eos, pad;
  std::vector<std::uint64_t> ends;  // of generated texts, by config.json and generation_config.json
};

struct BytePairs {
  Tokenizer tokenizer;
  tokenizers::TokenizerRules rules;  // what the tokenizer does besides its merges
  std::string unheld;                // clauses about what neither can express, joined by "; "; or empty
};

// `model` is the "model" of `file`, whose type is BPE; `config` is tokenizer_config.json. nullopt if the tokenizer is
// broken, which has been reported.
std::optional<BytePairs> read_byte_pairs(Reading&, const JsonObject& file, const JsonObject& model,
                                         const std::optional<JsonObject>& config, const Declared&);

}  // namespace weighbridge::huggingface

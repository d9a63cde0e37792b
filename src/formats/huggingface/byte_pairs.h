// SPDX-License-Identifier: Apache-2.0
// The BPE tokenizer of a Llama folder, from tokenizer.json, into a Tokenizer whose encoding is the same (readings M11,
// M14), or into the nearest one, with words for what is left out.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/huggingface/json_file.h"
#include "weighbridge/model.h"

namespace weighbridge::huggingface {

// What config.json says of the vocabulary.
struct Declared {
  std::optional<std::uint64_t> vocab_size, bos, eos, pad;
};

struct BytePairs {
  Tokenizer tokenizer;
  std::string unheld;  // what the merges do not do, sentences with "; " between; empty: they do it all
};

// `model` is the "model" of `file`, of the type BPE; `config` is tokenizer_config.json. nullopt: it is broken, which
// has been reported.
std::optional<BytePairs> read_byte_pairs(Reading&, const JsonObject& file, const JsonObject& model,
                                         const std::optional<JsonObject>& config, const Declared&);

}  // namespace weighbridge::huggingface

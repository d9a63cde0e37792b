// SPDX-License-Identifier: Apache-2.0
// Tokens with their ids as tokenizer.json lists them, for vocabularies of every kind: the model's own, then those that
// were added.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {

struct VocabularyEntry {
  std::uint64_t id = 0;
  wire::JsonString text;  // in the file's text
};

// Reports when so many tokens, or merges of them, take more than Limits::memory.
bool over_memory(Reading&, std::uint64_t tokens, const TextFile&);
// Of `raw`, an object of tokens with their ids in the file. False: it is something else, or too large, which has been
// reported.
bool read_entries(Reading&, const TextFile&, std::string_view raw, std::vector<VocabularyEntry>&);
// Those of "added_tokens" behind them.
void add_added(Reading&, const JsonObject& file, std::vector<VocabularyEntry>&);

}  // namespace weighbridge::huggingface

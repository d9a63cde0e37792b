// SPDX-License-Identifier: Apache-2.0
// Reads the tokens and ids that tokenizer.json lists, for vocabularies of every kind: the model's own, then the added
// ones.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {

struct VocabularyEntry {
  std::uint64_t id = 0;
  wire::JsonString text;  // in the file's text
  // Of an added token: whether programs do not treat it as text, whether only a word of its own or the spaces around it
  // are a match, and whether texts are normalized before they are searched for it.
  bool special = false, strict = false, normalized = false;
  bool single_word = false, lstrip = false, rstrip = false;  // one of which makes it strict
};

// Whether this many tokens, or merges, take more than Limits::memory, which is then reported.
bool over_memory(Reading&, std::uint64_t tokens, const TextFile&);
// Reads `raw`, an object in the file that maps tokens to ids. False if it is something else or too large, which has
// been reported.
bool read_entries(Reading&, const TextFile&, std::string_view raw, std::vector<VocabularyEntry>&);
// Appends the entries of "added_tokens"; and to `unknown` their keys that are not known, as written.
void add_added(Reading&, const JsonObject& file, std::vector<VocabularyEntry>&,
               std::vector<std::string_view>* unknown = nullptr);

}  // namespace weighbridge::huggingface

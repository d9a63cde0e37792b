// SPDX-License-Identifier: Apache-2.0
// Reads what a WordPiece tokenizer does besides its vocabulary: normalizer, pre-tokenizer, post-processor, added tokens
// and the model's settings of tokenizer.json, and the settings of tokenizer_config.json that change them. Each key is
// used, has no influence, or is refused by name. Leaves the vocabulary to vocabulary.cc.
//
// Where the two files differ, programs do: transformers takes the three flags of BERT's normalizer from
// tokenizer_config.json, and version 5 rebuilds the rest of a BertTokenizer as well. Here the three flags are those of
// tokenizer_config.json if it states them, and everything else is tokenizer.json's. Each difference is a warning.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/huggingface/setting_judge.h"
#include "formats/huggingface/vocabulary.h"
#include "tokenizers/tokenizer_rules.h"

namespace weighbridge::huggingface {

// An added token. Its own text: that of the file is gone when the rules are settled.
struct AddedEntry {
  std::uint64_t id = 0;
  std::string text{};
  bool special = false, normalized = false, single_word = false, lstrip = false, rstrip = false;
  bool of_vocabulary = true;  // the model's vocabulary has it too
};

struct WordRules {
  std::optional<bool> lower_case{}, strip_accents{}, space_chinese{};
  // Whether the normalizer is BERT's, of which the three flags above are all that can differ.
  bool plain = true, has_normalizer = false;
  std::optional<std::string> unknown{};  // the text of the unknown token
  tokenizers::TokenizerRules rules{};
  std::vector<AddedEntry> added{};  // special ones first, each with a valid id
};

// `entries` are the model's tokens and then the added ones, from `own` on. `table_length`: of a table of word vectors,
// how many tokens of a text it takes.
WordRules read_word_rules(Reading&, const JsonObject& file, const JsonObject& model,
                          const std::vector<VocabularyEntry>& entries, std::size_t own,
                          std::optional<std::uint64_t> table_length, SettingJudge&);

// Settles what the two files say. `config` is tokenizer_config.json, `tokenizer` what was read of the vocabulary.
void settle_word_rules(Reading&, WordRules&, const std::optional<JsonObject>& config, const Tokenizer& tokenizer,
                       bool bert, bool has_json, SettingJudge&);

// model_max_length of tokenizer_config.json: nullopt if there is none, or one beyond all texts.
std::optional<std::uint64_t> length_setting(const JsonObject& config);

}  // namespace weighbridge::huggingface

// SPDX-License-Identifier: Apache-2.0
// Reads the vocabulary of a folder into a Tokenizer: from vocab.txt, from tokenizer.json, or from both if they agree.
// Also reads the tokens and ids that tokenizer.json lists, for vocabularies of every kind.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/huggingface/config.h"
#include "formats/huggingface/json_file.h"
#include "formats/huggingface/setting_judge.h"
#include "weighbridge/model.h"

namespace weighbridge::huggingface {

// The special tokens of a BERT: their names in Tokenizer::special, in tokenizer_config.json, and in most vocabularies.
struct SpecialToken {
  std::string_view role, key, usual;
};
inline constexpr std::array<SpecialToken, 5> kSpecialTokens{{{"pad", "pad_token", "[PAD]"},
                                                             {"unk", "unk_token", "[UNK]"},
                                                             {"cls", "cls_token", "[CLS]"},
                                                             {"sep", "sep_token", "[SEP]"},
                                                             {"mask", "mask_token", "[MASK]"}}};
inline constexpr std::size_t kUnknownToken = 1;                       // in the list
using SpecialTexts = std::array<std::string, kSpecialTokens.size()>;  // empty: no such token

struct TokenizerFiles {
  std::optional<Tokenizer> tokenizer;
  std::optional<bool> lower_case, strip_accents, space_chinese;
  bool config_held = false;  // these represent all of tokenizer_config.json
  std::string rules,
      unheld;  // tokenizers::TokenizerRules as text; for a Llama, clauses about what the rules cannot express
  std::optional<std::uint64_t> model_max_length{};  // of tokenizer_config.json: tokens of a text
  SettingJudge judged{};                            // settings of the tokenizer that the program does not follow
};
// Reports errors, and for a BERT also a missing vocabulary or special token. A Llama's tokenizer must be a BPE, any
// other one WordPiece.
TokenizerFiles read_tokenizer(Reading&, const Config&);

// One token per line, with lines as Python reads them: \n, \r\n and \r end a line, and the last line may lack its end.
Texts tokens_of_lines(std::string_view text);
// A tokenizer without vocab_size and ids. If the text of a special token occurs several times, its last id counts.
Tokenizer wordpieces(Texts tokens, const SpecialTexts&);

// Reads the tokens and ids that tokenizer.json lists, for vocabularies of every kind: the model's own, then the added
// ones.

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

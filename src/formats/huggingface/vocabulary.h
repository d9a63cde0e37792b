// SPDX-License-Identifier: Apache-2.0
// Reads the vocabulary of a folder into a Tokenizer: from vocab.txt, from tokenizer.json, or from both if they agree.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/huggingface/config.h"
#include "formats/huggingface/json_file.h"
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
using SpecialTexts = std::array<std::string, kSpecialTokens.size()>;  // empty: no such token

struct TokenizerFiles {
  std::optional<Tokenizer> tokenizer;
  std::optional<bool> lower_case;
  bool config_held = false;   // the first two have all that tokenizer_config.json says
  std::string rules, unheld;  // for a Llama: what the tokenizer does besides its merges, and what is not even a rule
};
// Reports what is wrong, and for a BERT also a missing vocabulary or special token. A Llama's tokenizer must be a BPE,
// any other one WordPiece.
TokenizerFiles read_tokenizer(Reading&, const Config&);

// One token per line, with lines as Python reads them: \n, \r\n and \r end a line, and the last line may lack its end.
Texts tokens_of_lines(std::string_view text);
// A tokenizer without vocab_size and ids. If the text of a special token occurs several times, its last id counts.
Tokenizer wordpieces(Texts tokens, const SpecialTexts&);

}  // namespace weighbridge::huggingface

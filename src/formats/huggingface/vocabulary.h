// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a folder: vocab.txt, tokenizer.json, or both where they agree, into a Tokenizer; and the other way.
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
using SpecialTexts = std::array<std::string, kSpecialTokens.size()>;  // empty: there is none

struct TokenizerFiles {
  std::optional<Tokenizer> tokenizer;
  std::optional<bool> lower_case;
  std::string unheld;  // of a Llama: what the tokenizer does beside its merges
};
// Reports what is wrong. A BERT's vocabulary and special tokens are missed when they are not there; a Llama's tokenizer
// is a BPE, all others are wordpieces.
TokenizerFiles read_tokenizer(Reading&, const Config&);

// One token a line, as Python reads lines of text: \n, \r\n and \r end one, the last may lack its end.
Texts tokens_of_lines(std::string_view text);
// Without vocab_size and ids: the special tokens get the last id of their text.
Tokenizer wordpieces(Texts tokens, const SpecialTexts&);

}  // namespace weighbridge::huggingface

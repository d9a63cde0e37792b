// SPDX-License-Identifier: Apache-2.0
// The parts of a tokenizer other than its vocabulary and merges (splitting, normalization, added tokens) that this
// library implements, stored as a JSON attribute beside the model's Tokenizer. The reader of Hugging Face folders
// writes the attribute and the tokenizers read it. A container that cannot store it reports a loss. Of WordPiece, three
// settings are attributes of their own: do_lower_case, strip_accents and tokenize_chinese_chars.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/text_steps.h"
#include "weighbridge/model.h"

namespace weighbridge::tokenizers {

inline constexpr std::string_view kTokenizerRules = "tokenizer_rules";
// The attribute for everything that only tokenizer.json can express: clauses for people to read.
inline constexpr std::string_view kTokenizerUnheld = "tokenizer_unheld";

inline constexpr std::string_view kLowerCase = "do_lower_case", kStripAccents = "strip_accents",
                                  kSpaceChinese = "tokenize_chinese_chars";

// An added token: texts are searched for it before they are divided into words.
struct AddedToken {
  std::uint32_t id = 0;
  bool single_word = false;   // matches only as a separate word
  bool lstrip = false;        // also matches the white space before it
  bool rstrip = false;        // and after it
  bool normalized = false;    // texts are normalized before the search
  bool of_vocabulary = true;  // words may also be encoded to it
  bool operator==(const AddedToken&) const = default;
};

struct TokenizerRules {
  bool byte_level = false;               // tokens are sequences of bytes, and encoding starts from the bytes of a text
  bool apart = false;                    // some tokens are a single character that no merge produces
  bool whole_words = false;              // a word that is a token stays whole
  std::vector<std::string> words{};      // regular expressions, each of which divides what those before it have left
  std::optional<bool> bos{}, eos{};      // whether BOS goes before a text, and EOS after it
  std::vector<std::uint32_t> control{};  // ids that encoding never produces
  std::vector<std::uint32_t> found{};    // ids of tokens that texts are searched for first, from left to right
  std::vector<std::uint32_t> ends{};     // ids other than EOS that end a generated text
  // WordPiece only; unset members mean what BERT does. The first two are as in tokenizer.json
  // (tokenizers/text_steps.h); with a normalizer, the three attributes do not count.
  std::string normalizer{}, pre_tokenizer{};
  std::optional<std::uint32_t> word_limit{};       // maximum characters in a word
  std::optional<std::string> prefix{};             // of a wordpiece that continues a word
  std::optional<TextFrame> frame{};                // ids around a text
  std::optional<std::vector<AddedToken>> added{};  // unset: the special tokens, without flags
  bool operator==(const TokenizerRules&) const = default;
};

// Compact JSON of the members that differ from the defaults above; empty if none does.
std::string text_of(const TokenizerRules&);
// nullopt for anything that text_of() does not make.
std::optional<TokenizerRules> parse_tokenizer_rules(std::string_view);
// Whether the text of the attribute has a normalizer, so that the three attributes of BERT's do not count.
bool has_own_normalizer(std::string_view json);
// How encoding differs for a program that reads only the vocabulary and merges: clauses joined by "; ".
std::string beyond_merges(const TokenizerRules&);
// The same for a program that reads only the wordpieces and otherwise tokenizes like BERT.
std::string beyond_wordpieces(const TokenizerRules&);

// A tokenizer as the JSON text of the attribute "weighbridge.tokenizer" (reading Y10):
//   {"kind":"wordpiece","vocab_size":N,"tokens":[...],"ids":[...],"merges":[[left,right,output,rank],...],
//    "special":{"pad":0,...}}
// A token that is not UTF-8 is written as {"bytes":"<base64>"}; ids, merges and special are left out if empty.

// This project's own attribute (Y10).
inline constexpr std::string_view kTokenizerKey = "weighbridge.tokenizer";

std::string tokenizer_to_json(const Tokenizer&);
// Accepts only the output of tokenizer_to_json(), with keys in any order; nullopt for anything else.
std::optional<Tokenizer> tokenizer_from_json(std::string_view text);

}  // namespace weighbridge::tokenizers

// SPDX-License-Identifier: Apache-2.0
// What a tokenizer does besides its merges or its wordpieces, and that this program can do too: an attribute beside the
// model's Tokenizer, as JSON. The reader of Hugging Face folders makes it, the tokenizers use it, and a container that
// has no place for it names it as a loss. Of WordPiece, three settings are attributes of their own: do_lower_case,
// strip_accents and tokenize_chinese_chars. The Tokenizer itself has a form as JSON too.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text_steps.h"
#include "weighbridge/model.h"

namespace weighbridge::core {

inline constexpr std::string_view kTokenizerRules = "tokenizer_rules";
// The attribute for the rest, which only tokenizer.json can express: clauses for people.
inline constexpr std::string_view kTokenizerUnheld = "tokenizer_unheld";

inline constexpr std::string_view kLowerCase = "do_lower_case", kStripAccents = "strip_accents",
                                  kSpaceChinese = "tokenize_chinese_chars";

// A token that texts are searched for before they are divided into words.
struct AddedToken {
  std::uint32_t id = 0;
  bool single_word = false;   // only where it is a word of its own
  bool lstrip = false;        // takes the white space before it
  bool rstrip = false;        // and after it
  bool normalized = false;    // is searched for in normalized texts
  bool of_vocabulary = true;  // words may have it too
  bool operator==(const AddedToken&) const = default;
};

struct TokenizerRules {
  bool byte_level = false;               // tokens are sequences of bytes, and each character begins as its bytes
  bool apart = false;                    // there are tokens of a whole character that no merge makes
  bool whole_words = false;              // a word that is a token stays whole
  std::vector<std::string> words{};      // regular expressions, each of which divides what those before it have left
  std::optional<bool> bos{}, eos{};      // whether BOS goes before a text, and EOS after it
  std::vector<std::uint32_t> control{};  // ids of tokens that no text is encoded as
  std::vector<std::uint32_t> found{};    // ids of tokens that texts are searched for first, from left to right
  std::vector<std::uint32_t> ends{};     // ids besides EOS that end a generated text
  // Of WordPiece; what is unset is as in a BERT. The first two are as in tokenizer.json (core/text_steps.h); with a
  // normalizer, the three attributes do not count.
  std::string normalizer{}, pre_tokenizer{};
  std::optional<std::uint32_t> word_limit{};       // characters of the longest word
  std::optional<std::string> prefix{};             // of a wordpiece that continues a word
  std::optional<TextFrame> frame{};                // ids around a text
  std::optional<std::vector<AddedToken>> added{};  // unset: the special tokens, without flags
  bool operator==(const TokenizerRules&) const = default;
};

// Compact JSON of what is not as above; empty if everything is.
std::string text_of(const TokenizerRules&);
// nullopt for anything that text_of() does not make.
std::optional<TokenizerRules> parse_tokenizer_rules(std::string_view);
// Whether the text of the attribute has a normalizer, so that the three attributes of BERT's do not count.
bool has_own_normalizer(std::string_view json);
// What a program that has only the vocabulary and its merges would do differently: clauses joined by "; ".
std::string beyond_merges(const TokenizerRules&);
// The same of a program that has only the wordpieces, and does with a text what a BERT does.
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

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// What a tokenizer of byte pairs does besides its merges, and that this program can do too: an attribute beside the
// model's Tokenizer, as JSON. The reader of Hugging Face folders makes it, the tokenizers use it, and a container that
// has no place for it names it as a loss.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weighbridge::core {

inline constexpr std::string_view kTokenizerRules = "tokenizer_rules";
// The attribute for the rest, which only tokenizer.json can express: clauses for people.
inline constexpr std::string_view kTokenizerUnheld = "tokenizer_unheld";

struct TokenizerRules {
  bool byte_level = false;               // tokens are sequences of bytes, and each character begins as its bytes
  bool apart = false;                    // there are tokens of a whole character that no merge makes
  bool whole_words = false;              // a word that is a token stays whole
  std::vector<std::string> words{};      // regular expressions, each of which divides what those before it have left
  std::optional<bool> bos{}, eos{};      // whether BOS goes before a text, and EOS after it
  std::vector<std::uint32_t> control{};  // ids of tokens that no text is encoded as
  std::vector<std::uint32_t> found{};    // ids of tokens that texts are searched for first, from left to right
  std::vector<std::uint32_t> ends{};     // ids besides EOS that end a generated text
  bool operator==(const TokenizerRules&) const = default;
};

// Compact JSON of what is not as above; empty if everything is.
std::string text_of(const TokenizerRules&);
// nullopt for anything that text_of() does not make.
std::optional<TokenizerRules> parse_tokenizer_rules(std::string_view);
// What a program that has only the vocabulary and its merges would do differently: clauses joined by "; ".
std::string beyond_merges(const TokenizerRules&);

}  // namespace weighbridge::core

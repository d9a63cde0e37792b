// SPDX-License-Identifier: Apache-2.0
// WordPiece step by step, for tokenizers that are not as BERT's: added tokens in the raw text, normalizers, added
// tokens in the normalized text, pre-tokenizers, longest matches, in the order of the reference (the crate tokenizers,
// src/tokenizer/added_vocabulary.rs and mod.rs). It needs memory for each character of a text; wordpiece.cc, which does
// not, stays the way for BERT's own settings. Tests compare the two.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/text_steps.h"
#include "tokenizers/tokenizer_rules.h"
#include "tokenizers/vocabulary.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::tokenizers {

// The most characters of a word that can be asked for here, and the length of the longest added token in bytes:
// both bound what a character of a text can cost.
inline constexpr std::uint32_t kMaxCharacters = 1000;
inline constexpr std::size_t kLongestAdded = 256;
// Steps may make a text this many times as long, and this many characters longer. More is an error of limits.
inline constexpr std::uint64_t kMaxGrowth = 16, kMaxMore = 4096;

struct AddedText {
  tokenizers::AddedToken token;
  std::string text;
};

class Stepwise {
 public:
  struct Settings {
    std::vector<tokenizers::TextStep> normalizer{};
    std::vector<tokenizers::SplitStep> pre_tokenizer{};
    std::string prefix{};
    std::uint32_t word_limit = 0, unknown = 0;
  };
  // `entries` are the words; the texts of `added` may be others. Throws Error{unsupported} for an added token that the
  // normalizer deletes.
  Stepwise(std::span<const Vocabulary::Entry> entries, const std::vector<AddedText>& added, Settings);

  struct Tokens {
    std::vector<std::uint32_t> ids;
    std::vector<TokenSpan> spans;  // in bytes
    std::uint64_t replaced = 0;
  };
  // Throws Error{limit} if the text grows too much.
  Tokens run(std::string_view text) const;

 private:
  struct Placed {
    char32_t code;
    TokenSpan at;
  };
  using Line = std::vector<Placed>;
  struct Range {
    std::size_t begin, end;
  };

  // Tokens that are found in a text, the longest one at the first place.
  struct Finder {
    std::vector<AddedText> tokens;
    std::optional<Vocabulary> trie{};
  };
  static Finder finder_of(std::vector<AddedText> tokens);

  template <class Text, class Token> void divide(const Line& line, const Finder&, const Text&, const Token&) const;
  // `room`: how many more characters the whole text may have.
  Line normalize(Line line, std::uint64_t& room) const;
  std::vector<Range> words(const Line& line) const;
  void match(std::span<const Placed> word, Tokens& out) const;

  const Settings settings_;
  const Vocabulary vocabulary_;
  Finder raw_, normalized_;
};

}  // namespace weighbridge::tokenizers

// SPDX-License-Identifier: Apache-2.0
// Text to ids by BERT's rules: what a vocabulary prepares once, and the single pass over a text. Leaves [CLS], [SEP]
// and the public contract to tokenize.cc.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/vocabulary.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::tokenizers {

// The largest WordPieceOptions::word_limit: buffers for words are on the stack.
inline constexpr std::uint32_t kMaxWordLimit = 255;
// The length of the longest special token, in bytes. Limited because one may begin at each byte of a text.
inline constexpr std::size_t kMaxSpecial = 256;

// The class of a byte that begins a character. slow: not ASCII, or the start of a special token.
enum class ByteClass : std::uint8_t { word, space, punctuation, removed, slow };

struct Special {
  std::string text;
  std::uint32_t id;
};

class Rules {
 public:
  Rules(std::span<const Vocabulary::Entry> entries, std::vector<Special> specials, std::uint32_t unknown,
        const WordPieceOptions&);

  Vocabulary vocabulary;
  bool lower_case, strip_accents, space_chinese;
  std::uint32_t word_limit, unknown;
  std::array<ByteClass, 256> classes{};     // slow where a special token may begin
  std::array<ByteClass, 256> plain{};       // ignores special tokens
  std::array<bool, 256> special_begins{};   // true for bytes that begin a special token
  std::array<std::uint32_t, 128> single{};  // the id of an ASCII character that forms a word of its own
  // The longest special token at text[at], or null.
  const Special* special_at(std::string_view text, std::size_t at) const noexcept;

 private:
  std::vector<Special> specials_;        // longest first
  std::optional<Vocabulary> by_text_{};  // their places in specials_, if there are many
};

// Writes the ids of the text's first tokens, without [CLS] and [SEP]. `spans` is null or has room for as many as `ids`.
Encoded tokenize(const Rules&, std::string_view text, std::span<std::uint32_t> ids, TokenSpan* spans);

}  // namespace weighbridge::tokenizers

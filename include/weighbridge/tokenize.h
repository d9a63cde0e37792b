// SPDX-License-Identifier: Apache-2.0
// weighbridge/tokenize.h: text to ids and back. Owns WordPiece, the tokenizer of BERT and its kin. Leaves the
// vocabulary itself to model.h (Tokenizer), and what is done with the ids to the runtimes.
//
// EXACT      The ids are those of Hugging Face's tokenizers for a BERT vocabulary: the same cleaning, spacing, lower
//            casing, stripping of accents, splitting and longest matches, the same Unicode of each, special tokens in
//            the text included.
// TEXT       Any bytes. Invalid UTF-8 counts as U+FFFD for each maximal subpart, as Python's errors="replace" reads it;
//            the cleaning deletes U+FFFD, and Encoded::replaced counts them.
// THREADS    Immutable; every member may run concurrently. A copy is one reference count.
// MEMORY     encode() into a span allocates nothing (but for texts that hold runs of spacing marks out of canonical
//            order). Time is linear in the text: no word costs more than its first `word_limit` characters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge {

struct WordPieceOptions {
  bool lower_case = true;
  std::optional<bool> strip_accents{};  // unset: as lower_case
  bool space_chinese = true;            // each Chinese character is a word
  std::uint32_t word_limit = 100;       // a word of more characters, once normalised, is one [UNK]; 1 to 255
};

struct EncodeOptions {
  std::uint64_t max_length = 0;  // ids in all, special ones included; 0: no limit
  bool special = true;           // [CLS] before and [SEP] behind
};

// Where a token stands in the text: bytes, or code points of the text as Python would decode it. {0, 0} for [CLS] and
// [SEP] that encode() added. Accents behind the last letter of a token are not part of it.
struct TokenSpan {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const TokenSpan&) const = default;
};

struct Encoded {
  std::uint64_t count = 0;     // ids written
  std::uint64_t replaced = 0;  // invalid sequences of UTF-8 in the whole text
  bool truncated = false;      // the text had more tokens than found room
  bool operator==(const Encoded&) const = default;
};

class WordPiece {
 public:
  // Throws Error{malformed} with rule "tokenizer/..." for a vocabulary that is none of wordpiece, lacks [UNK], [CLS] or
  // [SEP], or whose ids and tokens do not go together. Special tokens are those that it names; where it names none for
  // a role, the token of BERT's own spelling ("[CLS]"). Of equal tokens the last one counts.
  explicit WordPiece(const Tokenizer&, const WordPieceOptions& = {});
  // The vocabulary of a vocab.txt: a token a line, its id the number of the line from 0.
  static Tokenizer vocabulary(std::string_view vocab_txt);

  // The most ids that a text of this many bytes can have, [CLS] and [SEP] included.
  static constexpr std::uint64_t bound(std::uint64_t text_bytes) noexcept { return text_bytes + 2; }

  // Writes the ids of the first tokens that fit both `ids` and max_length. Misuse: no room for [CLS] and [SEP] where
  // they are asked for; `spans` neither empty nor as long as `ids`.
  Encoded encode(std::string_view text, std::span<std::uint32_t> ids, const EncodeOptions& = {},
                 std::span<TokenSpan> spans = {}) const;
  std::vector<std::uint32_t> encode(std::string_view text, const EncodeOptions& = {}) const;
  // Turns the spans of encode(), which are in bytes, into code points. Linear in the text.
  static void to_code_points(std::string_view text, std::span<TokenSpan> spans) noexcept;

  std::optional<std::string_view> token(std::uint32_t id) const noexcept;  // "##ing"; lives as long as any copy
  std::uint32_t size() const noexcept;                                     // 1 + the largest id
  // "pad" "unk" "cls" "sep" "mask": the id of that special token.
  std::optional<std::uint32_t> special(std::string_view role) const noexcept;
  const WordPieceOptions& options() const noexcept;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text to ids and back. Owns WordPiece, the tokenizer of BERT and its kin, and BytePair, that of language models.
/// Leaves the vocabulary itself to model.h (Tokenizer), and what is done with the ids to the runtimes. What follows is
/// of WordPiece; BytePair says its own below.
///
/// - **Exact.** The ids are those of Hugging Face's tokenizers for a BERT vocabulary: the same cleaning, spacing, lower
///   casing, stripping of accents, splitting and longest matches, the same Unicode of each, special tokens in the text
///   included.
/// - **Text.** Any bytes. Invalid UTF-8 counts as U+FFFD for each maximal subpart, as Python's errors="replace" reads
///   it; the cleaning deletes U+FFFD, and Encoded::replaced counts them.
/// - **Threads.** Immutable; every member may run concurrently. A copy is one reference count.
/// - **Memory.** encode() into a span allocates nothing (but for texts that hold runs of spacing marks out of canonical
///   order). Time is linear in the text: no word costs more than its first `word_limit` characters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/model.h"
#include "weighbridge/source.h"

namespace weighbridge {

/// How a text is normalized and cut.
struct WordPieceOptions {
  bool lower_case = true;               ///< as "uncased" models were trained
  std::optional<bool> strip_accents{};  ///< unset: as lower_case
  bool space_chinese = true;            ///< each Chinese character is a word
  std::uint32_t word_limit = 100;       ///< a word of more characters, once normalized, is one [UNK]; 1 to 255
};

/// What encode() puts around a text, and where it stops.
struct EncodeOptions {
  std::uint64_t max_length = 0;  ///< ids in all, special ones included; 0: no limit
  bool special = true;           ///< [CLS] before and [SEP] behind
};

/// Where a token stands in the text: bytes, or code points of the text as Python would decode it. {0, 0} for [CLS] and
/// [SEP] that encode() added. Accents behind the last letter of a token are not part of it.
struct TokenSpan {
  std::uint64_t begin = 0;  ///< of the first one
  std::uint64_t end = 0;    ///< behind the last one
  bool operator==(const TokenSpan&) const = default;
};

/// What became of one text.
struct Encoded {
  std::uint64_t count = 0;     ///< ids written
  std::uint64_t replaced = 0;  ///< invalid sequences of UTF-8 in the whole text
  bool truncated = false;      ///< the text had more tokens than found room
  bool operator==(const Encoded&) const = default;
};

/// The tokenizer of BERT and its kin.
class WordPiece {
 public:
  /// Throws Error{malformed} with rule "tokenizer/..." for a vocabulary that is none of wordpiece, lacks [UNK], [CLS]
  /// or [SEP], or whose ids and tokens do not go together. Special tokens are those that it names; where it names none
  /// for a role, the token of BERT's own spelling ("[CLS]"). Of equal tokens the last one counts.
  explicit WordPiece(const Tokenizer&, const WordPieceOptions& = {});
  /// The vocabulary of a vocab.txt: a token a line, its id the number of the line from 0. Throws Error{malformed} with
  /// rule "tokenizer/utf8" where it is no valid UTF-8.
  static Tokenizer vocabulary(std::string_view vocab_txt);
  /// [reads] The same of a file. Throws Error{malformed} too with rule "limit/header" where it is larger than that,
  /// "limit/memory" for more tokens than that has room for, and "tokenizer/token" for one of over 4,096 bytes.
  static Tokenizer vocabulary(const Source& vocab_txt, const Limits& = {});

  /// The most ids that a text of this many bytes can have, [CLS] and [SEP] included.
  static constexpr std::uint64_t bound(std::uint64_t text_bytes) noexcept { return text_bytes + 2; }

  /// Writes the ids of the first tokens that fit both `ids` and max_length. Misuse: no room for [CLS] and [SEP] where
  /// they are asked for; `spans` neither empty nor as long as `ids`.
  Encoded encode(std::string_view text, std::span<std::uint32_t> ids, const EncodeOptions& = {},
                 std::span<TokenSpan> spans = {}) const;
  /// The same, in a vector of their number.
  std::vector<std::uint32_t> encode(std::string_view text, const EncodeOptions& = {}) const;
  /// Turns the spans of encode(), which are in bytes, into code points. Linear in the text.
  static void to_code_points(std::string_view text, std::span<TokenSpan> spans) noexcept;

  std::optional<std::string_view> token(std::uint32_t id) const noexcept;  ///< "##ing"; lives as long as any copy
  std::uint32_t size() const noexcept;                                     ///< 1 + the largest id
  /// "pad" "unk" "cls" "sep" "mask": the id of that special token.
  std::optional<std::uint32_t> special(std::string_view role) const noexcept;
  const WordPieceOptions& options() const noexcept;  ///< that it was made with

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

/// How texts are cut.
struct BytePairOptions {
  /// One space before a text that is not empty, which decoding drops behind BOS. Unset: where the vocabulary is of
  /// sentencepiece origin (bpe, ids 3..258 the bytes in order, BOS 1, EOS 2).
  std::optional<bool> prefix_space{};
};

/// What encode() puts around a text. A prompt has no EOS behind it.
struct FrameOptions {
  bool bos = true;               ///< in front
  bool eos = false;              ///< behind
  std::uint64_t max_length = 0;  ///< ids in all, BOS and EOS included; 0: no limit
};

/// The tokenizers of language models, kinds byte and bpe, as SLM has them (readings M10, M11, M14, M17).
///
/// - **Encoding.** byte: each byte is the token of its value. bpe: a character of UTF-8 starts as the token that it
///   spells (of several the highest id), unless a merge gives that token; then, and where it spells none, as its bytes,
///   and bytes that are no UTF-8 singly. A byte is the token that it spells (of several the highest id), else the id of
///   its value where no token has that id, else UNK. Then the merge of lowest rank is done, leftmost first, until none
///   is left; of equal pairs the lowest rank counts, then the first. A special token that the text spells is text like
///   any other.
/// - **Decoding.** BOS, EOS and PAD give nothing; UNK and ids without bytes '?'. An id that is UNK and PAD is UNK.
/// - **Threads.** Immutable; every member may run concurrently. A copy is one reference count.
/// - **Cost.** Time O(n log n) and memory O(n) in the length of the text, whatever the merges are.
class BytePair {
 public:
  /// Throws Error{malformed} with rule "tokenizer/..." for a vocabulary that is wordpiece, does not name BOS, EOS and
  /// UNK (PAD: UNK where it names none), or whose ids, tokens and merges do not go together.
  explicit BytePair(const Tokenizer&, const BytePairOptions& = {});

  /// The first ids that fit max_length, BOS and EOS kept. Misuse: no room for those; a text of 4 GiB or more.
  std::vector<std::uint32_t> encode(std::string_view text, const FrameOptions& = {}) const;
  /// Misuse: an id that is not in the vocabulary.
  std::string decode(std::span<const std::uint32_t> ids) const;

  /// Its bytes, which need be no UTF-8; nullopt: none (special tokens without a record), or no such id. Lives as long
  /// as any copy.
  std::optional<std::string_view> token(std::uint32_t id) const noexcept;
  std::uint32_t size() const noexcept;  ///< the vocabulary as declared
  std::uint32_t bos() const noexcept;   ///< begins a text
  std::uint32_t eos() const noexcept;   ///< ends one
  std::uint32_t pad() const noexcept;   ///< fills up
  std::uint32_t unk() const noexcept;   ///< stands for what has no token
  bool prefix_space() const noexcept;   ///< as BytePairOptions, decided

  class Decoder;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

/// Decodes a stream of ids. All that push() and finish() return is together what decode() gives, and no push() ends
/// inside a character: a beginning of one is kept until it is whole, or until what follows is none of it; invalid bytes
/// come out as they are. Of one thread at a time.
class BytePair::Decoder {
 public:
  explicit Decoder(const BytePair&);   ///< at the beginning of a text
  std::string push(std::uint32_t id);  ///< misuse: an id that is not in the vocabulary
  std::string finish();                ///< what was kept; the decoder is as new then

 private:
  std::shared_ptr<const Rep> rep_;
  std::string kept_;  // at most 3 bytes
  bool after_bos_ = false;
};

/// A text as ids, with how each is spelt.
struct TokenizedText {
  std::vector<std::uint32_t> ids{};        ///< As the runtimes use them.
  std::vector<std::string_view> tokens{};  ///< One for each id; they live as long as any copy of the TextTokenizer.
  std::vector<TokenSpan> offsets{};        ///< In code points, one for each id; empty where they were not asked for.
  bool truncated = false;                  ///< The text had more ids than the length allows.
  std::uint64_t replaced = 0;              ///< Invalid sequences of UTF-8 (wordpiece).
};

/// What a TextTokenizer does with each text.
struct TextTokenizerOptions {
  bool special = true;   ///< [CLS] before and [SEP] behind; BOS before, as in front of a prompt.
  bool offsets = false;  ///< Where each token stands; wordpiece only.
  /// Ids in all, at least 2. 0: as many as Embedder reads of a model that has places for tokens, else no limit.
  std::uint64_t max_length = 0;
  BytePairOptions byte_pair{};            ///< For kinds byte and bpe.
  const Tokenizer* vocabulary = nullptr;  ///< In place of the model's own; read when the TextTokenizer is made.
};

/// The tokenizer of a model, of whichever kind, as embed.h and generate.h set it up. Immutable; every member may run
/// concurrently. A copy is one reference count.
class TextTokenizer {
 public:
  /// @throws Error misuse: neither the model nor the options have a vocabulary; offsets of another kind than wordpiece.
  ///   Error malformed with rule "tokenizer/..." as WordPiece and BytePair say.
  explicit TextTokenizer(const Model&, const TextTokenizerOptions& = {});
  /// @throws Error misuse: a text of 4 GiB or more (byte and bpe).
  TokenizedText operator()(std::string_view text) const;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

}  // namespace weighbridge

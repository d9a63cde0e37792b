// SPDX-License-Identifier: Apache-2.0
/// \file
/// Converts text to ids and back. Owns WordPiece (BERT and similar models), BytePair (language models) and
/// TextTokenizer, which takes either. The vocabulary is Tokenizer in model.h. The following is about WordPiece;
/// BytePair has its own contract below.
///
/// - **Exact.** The ids are those of Hugging Face's tokenizers for a BERT vocabulary: the same cleaning, spacing,
///   lower-casing, accent stripping, splitting and longest matches, with the same Unicode versions, and with special
///   tokens in the text.
/// - **Text.** Any bytes. Each maximal subpart of invalid UTF-8 becomes U+FFFD, as with Python's errors="replace".
///   Cleaning deletes U+FFFD; Encoded::replaced counts these sequences.
/// - **Threads.** Immutable; every member may run concurrently. Copying one costs a reference count.
/// - **Memory.** encode() into a span allocates nothing, unless WordPieceOptions::rules ask for other steps than
/// BERT's;
///   then it takes memory for each character. Time is linear in the text: no word costs more than its first
///   `word_limit` characters.
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

/// How a text is normalized and split.
struct WordPieceOptions {
  bool lower_case = true;               ///< for "uncased" models
  std::optional<bool> strip_accents{};  ///< unset: as lower_case
  bool space_chinese = true;            ///< make each Chinese character a word
  std::uint32_t word_limit = 100;       ///< a word of more normalized characters becomes [UNK]; 1 to 255
  /// What else the tokenizer does, as the attribute "tokenizer_rules" of a model has it: other normalizers and
  /// pre-tokenizers, added tokens, the ids around a text. Empty: what a BERT's does.
  std::string rules{};
  /// Settings in `rules` that are left out although they are not supported: "normalizer.type". Any other one is an
  /// error.
  std::vector<std::string> ignore_settings{};
};

/// What encode() adds around a text, and where it stops.
struct EncodeOptions {
  std::uint64_t max_length = 0;  ///< maximum number of ids, special ones included; 0: no limit
  bool special = true;           ///< add [CLS] before and [SEP] after
};

/// The position of a token in the text, in bytes or in code points as Python would decode it. {0, 0} for the [CLS] and
/// [SEP] that encode() adds. Combining accents after the last letter of a token are not part of it.
struct TokenSpan {
  std::uint64_t begin = 0;  ///< of its first one
  std::uint64_t end = 0;    ///< after its last one
  bool operator==(const TokenSpan&) const = default;
};

/// What encode() reports of one text.
struct Encoded {
  std::uint64_t count = 0;     ///< ids written
  std::uint64_t replaced = 0;  ///< invalid sequences of UTF-8 in the whole text
  bool truncated = false;      ///< the text had more tokens than fit
  bool operator==(const Encoded&) const = default;
};

/// The tokenizer of BERT and similar models.
class WordPiece {
 public:
  /// Throws Error{malformed} with rule "tokenizer/..." for a vocabulary that is not wordpiece, lacks [UNK], [CLS] or
  /// [SEP], or whose ids and tokens do not match. The vocabulary names the special tokens; a role without a name takes
  /// the token that BERT uses ("[CLS]"). Of equal tokens, the last one counts. Error{unsupported} "tokenizer/setting"
  /// for rules with a step or a setting that is not supported; its message names the setting.
  explicit WordPiece(const Tokenizer&, const WordPieceOptions& = {});
  /// The vocabulary of a vocab.txt: one token per line, whose id is the line number from 0. Throws Error{malformed}
  /// with rule "tokenizer/utf8" for invalid UTF-8.
  static Tokenizer vocabulary(std::string_view vocab_txt);
  /// [reads] The same from a file. Also throws Error{malformed} "tokenizer/token" for a token of more than 4,096 bytes,
  /// and Error{limit} if the file exceeds limits.header or its tokens exceed limits.memory.
  static Tokenizer vocabulary(const Source& vocab_txt, const Limits& = {});

  /// The maximum number of ids for a text of this many bytes, [CLS] and [SEP] included, without
  /// WordPieceOptions::rules.
  static constexpr std::uint64_t bound(std::uint64_t text_bytes) noexcept { return text_bytes + 2; }
  /// The same for this tokenizer, with its rules.
  std::uint64_t max_ids(std::uint64_t text_bytes) const noexcept;

  /// Writes the ids of the first tokens that fit both `ids` and max_length. Error{misuse}: no room for [CLS] and [SEP]
  /// if requested; `spans` is not empty but shorter than `ids`. Error{limit}: the rules make a text many times as long.
  Encoded encode(std::string_view text, std::span<std::uint32_t> ids, const EncodeOptions& = {},
                 std::span<TokenSpan> spans = {}) const;
  /// The same for vectors, which get the size that the text needs.
  Encoded encode_all(std::string_view text, std::vector<std::uint32_t>& ids, const EncodeOptions& = {},
                     std::vector<TokenSpan>* spans = nullptr) const;
  /// The same, as a vector.
  std::vector<std::uint32_t> encode(std::string_view text, const EncodeOptions& = {}) const;
  /// Converts the spans of encode() from bytes to code points. Linear in the text.
  static void to_code_points(std::string_view text, std::span<TokenSpan> spans) noexcept;

  /// The text of ids, as the decoder of Hugging Face's tokenizers for WordPiece gives it: words with a space between
  /// them, none before . , ? ! and 's. [CLS], [SEP] and [PAD] give nothing. Encoding may have lost case and accents.
  /// Error{misuse}: an id that no token has.
  std::string decode(std::span<const std::uint32_t> ids) const;
  std::optional<std::string_view> token(std::uint32_t id) const noexcept;  ///< "##ing"; valid as long as any copy lives
  std::uint32_t size() const noexcept;                                     ///< 1 + the largest id
  /// "pad" "unk" "cls" "sep" "mask": the id of that special token.
  std::optional<std::uint32_t> special(std::string_view role) const noexcept;
  const WordPieceOptions& options() const noexcept;  ///< as given

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

/// How texts are split.
struct BytePairOptions {
  /// Adds a space before a nonempty text; decoding drops it after BOS. Unset: only for vocabularies from sentencepiece
  /// (bpe, ids 3..258 are the bytes in order, BOS 1, EOS 2).
  std::optional<bool> prefix_space{};
  /// Divide a text into words, and merge within each: the name of a known division, as metadata of GGUF state it in
  /// tokenizer.ggml.pre ("llama-bpe", "qwen2", "gpt-2"), or "hf-" and such a name if Hugging Face's tokenizers divide
  /// some texts differently ("hf-llama-bpe"). Empty: texts are not divided.
  std::string words{};
  bool metaspace = false;    ///< U+2581 in a text is a space, because some programs write spaces that way
  bool byte_level = false;   ///< each character begins as the tokens of its bytes, never as a token of its own
  bool whole_words = false;  ///< a word that is a token stays whole, without merges (ignore_merges)
  bool adds_bos = true;      ///< false: encode() adds no BOS, whatever FrameOptions says
  bool adds_eos = false;     ///< TextTokenizer puts EOS after a text; encode() does what FrameOptions says
  /// Ids of tokens that are found in a text before all others, the longest first, as llama.cpp does.
  std::vector<std::uint32_t> in_texts{};
  /// Find them from left to right instead, the longest one at each place, as Hugging Face's tokenizers do.
  bool leftmost = false;
  std::vector<std::uint32_t> control{};  ///< ids of tokens that no text is encoded as, whatever it spells
  std::vector<std::uint32_t> ends{};     ///< ids besides EOS that end a generated text
};

/// What encode() adds around a text. The default is for a prompt, which has no EOS.
struct FrameOptions {
  bool bos = true;               ///< add BOS before the text
  bool eos = false;              ///< add EOS after it
  std::uint64_t max_length = 0;  ///< maximum number of ids, BOS and EOS included; 0: no limit
};

/// The tokenizers of language models, kinds byte and bpe, as in SLM (readings M10, M11, M14, M17).
///
/// - **Encoding.** byte: each byte is the token of its value. bpe: a UTF-8 character starts as the token with its
///   spelling (the highest id of several). It starts as its bytes if there is no such token or a merge produces it;
///   invalid bytes start singly. A byte is the token with its spelling (the highest id of several), else the id of its
///   value if no token has that id, else UNK. Then the merge of lowest rank is applied, leftmost first, until none
///   applies; of equal pairs, the lowest rank counts, then the first. Special tokens in the text are ordinary text.
/// - **Decoding.** BOS, EOS and PAD give nothing; UNK and ids without bytes give '?'. An id that is both UNK and PAD
///   counts as UNK.
/// - **Threads.** Immutable; every member may run concurrently. Copying one costs a reference count.
/// - **Cost.** Time O(n log n) and memory O(n) in the length of the text, for any merges.
class BytePair {
 public:
  /// Throws Error{malformed} with rule "tokenizer/..." for a vocabulary that is wordpiece, does not name BOS, EOS and
  /// UNK, or whose ids, tokens and merges do not match. PAD defaults to UNK. Error{unsupported} "tokenizer/words" for a
  /// division that is not known.
  explicit BytePair(const Tokenizer&, const BytePairOptions& = {});

  /// The first ids that fit max_length; keeps BOS and EOS. Error{misuse}: no room for those; a text of 4 GiB or more.
  std::vector<std::uint32_t> encode(std::string_view text, const FrameOptions& = {}) const;
  /// Error{misuse}: an id that is not in the vocabulary.
  std::string decode(std::span<const std::uint32_t> ids) const;

  /// The bytes of an id, which may be invalid UTF-8; nullopt if it has none (special tokens without a record) or does
  /// not exist. Valid as long as any copy lives.
  std::optional<std::string_view> token(std::uint32_t id) const noexcept;
  std::uint32_t size() const noexcept;         ///< the vocabulary as declared
  std::uint32_t bos() const noexcept;          ///< begins a text
  std::uint32_t eos() const noexcept;          ///< ends one
  std::uint32_t pad() const noexcept;          ///< padding
  std::uint32_t unk() const noexcept;          ///< stands for what has no token
  bool prefix_space() const noexcept;          ///< as BytePairOptions; the value in use
  bool adds_bos() const noexcept;              ///< as BytePairOptions
  bool adds_eos() const noexcept;              ///< as BytePairOptions
  bool ends(std::uint32_t id) const noexcept;  ///< whether a generated text ends with it: EOS, BytePairOptions::ends

  class Decoder;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

/// Decodes a stream of ids. The concatenated results of push() and finish() equal decode(). push() never returns part
/// of a character: it keeps an incomplete one until it is complete or turns out invalid, and returns invalid bytes
/// unchanged. For one thread at a time.
class BytePair::Decoder {
 public:
  explicit Decoder(const BytePair&);   ///< at the beginning of a text
  std::string push(std::uint32_t id);  ///< Error{misuse}: an id that is not in the vocabulary
  std::string finish();                ///< the bytes kept so far; resets the decoder

 private:
  std::shared_ptr<const Rep> rep_;
  std::string kept_;  // of an incomplete character
  bool after_bos_ = false;
};

/// A text as ids, with the token of each.
struct TokenizedText {
  std::vector<std::uint32_t> ids{};        ///< As the runtimes use them.
  std::vector<std::string_view> tokens{};  ///< One for each id; valid as long as any copy of the TextTokenizer lives.
  std::vector<TokenSpan> offsets{};        ///< In code points, one for each id; empty if not requested.
  bool truncated = false;                  ///< The text had more ids than max_length.
  std::uint64_t replaced = 0;              ///< Invalid sequences of UTF-8 (wordpiece).
};

/// Options of TextTokenizer.
struct TextTokenizerOptions {
  bool special = true;   ///< Add [CLS] and [SEP], or for byte and bpe BOS and EOS as the model says.
  bool offsets = false;  ///< Return the position of each token; wordpiece only.
  /// Maximum number of ids, at least 2. 0: as many as Embedder reads, for a model with a limited number of positions;
  /// else no limit.
  std::uint64_t max_length = 0;
  BytePairOptions byte_pair{};            ///< For kinds byte and bpe.
  const Tokenizer* vocabulary = nullptr;  ///< In place of the model's own; read when the TextTokenizer is made.
  /// Settings of the tokenizer that are passed although this program does not follow them: "KEY" or "FILE:KEY".
  std::vector<std::string> ignore_settings{};
};

/// The tokenizer of a model, of any kind, set up as in embed.h and generate.h. Immutable; every member may run
/// concurrently. Copying one costs a reference count.
class TextTokenizer {
 public:
  /// @throws Error misuse: neither the model nor the options have a vocabulary; offsets are requested for a kind other
  ///   than wordpiece. Error malformed with rule "tokenizer/..." as WordPiece and BytePair do. Error unsupported: the
  ///   model's tokenizer does something that is not implemented here.
  explicit TextTokenizer(const Model&, const TextTokenizerOptions& = {});
  /// @throws Error misuse: a text of 4 GiB or more (byte and bpe).
  TokenizedText operator()(std::string_view text) const;
  /// The text of ids, as WordPiece and BytePair decode it. Error{misuse}: an id that is not in the vocabulary.
  std::string decode(std::span<const std::uint32_t> ids) const;
  std::uint32_t size() const noexcept;  ///< of the vocabulary
  /// Settings of the tokenizer that are unknown, passed over, or in conflict: sentences.
  const std::vector<std::string>& notes() const noexcept;

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

}  // namespace weighbridge

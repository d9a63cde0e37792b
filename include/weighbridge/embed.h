// SPDX-License-Identifier: Apache-2.0
/// \file
/// Turns texts into vectors. Owns Embedder, which runs a BERT encoder or a table of word vectors from any container
/// that holds one.
///
/// - **Encoder.** Tensors by the names of Hugging Face's BertModel ("embeddings.word_embeddings.weight", with or
///   without "bert." before it), of any dtype that casts to f32. Sizes come from the tensors' shapes. The metadata must
///   have "num_attention_heads" and may have "num_layers", "layer_norm_eps" (default 1e-12), "hidden_act" ("gelu", the
///   exact error function; "gelu_new" and "gelu_pytorch_tanh" are its tanh form), "max_seq_length" (default 256, or the
///   number of positions if that is less), "pooling_mode" (default "mean"; several joined by "+" give one vector after
///   the other), "normalize" (default true) and "do_lower_case" (default true). What else sentence-transformers may
///   have saved: "sentence_modules" (Dense, LayerNorm and Normalize after the pooling, WeightedLayerPooling before it,
///   whose tensors begin with the name of the module's folder), "include_prompt", "prompts", "default_prompt_name" and
///   "truncate_dim".
/// - **Table of word vectors** (StaticEmbedding of sentence-transformers, model2vec). A matrix "embeddings" or
///   "embedding.weight" with a row for each token. A text's vector is the mean of the rows of its tokens, without [CLS]
///   and [SEP] and without unknown tokens; zeros if there are none. "mapping" and "weights", if the model has them, are
///   the row and the factor of each id. The metadata may have "max_length" (default 512; null: no limit) and
///   "normalize" (default false), also as "hf.max_length" and "hf.normalize". First, a text is cut to max_length times
///   the median length of the tokens, in characters, as in model2vec.
/// - **Settings.** A setting of the model's folder that this build does not follow is Error{unsupported}
///   "embed/setting" (EmbedOptions::ignore_settings), and a model_type other than "bert" is "embed/model-type".
///   Embedder::notes() names settings that it does not know.
/// - **Prompts.** embed() puts a text before each text: the prompt of the options, else the default one of the model.
/// - **Same bits.** The vector of a text is the same alone, in any batch, in any order and with any number of threads.
///   In f32, bf16 and int8 it is the same on every processor. In f16, all processors with AVX512-FP16 give one result
///   and all others give another; the two agree within rounding error.
/// - **Threads.** Every const member may run concurrently; calls of embed() take turns, and each uses all the threads
///   of EmbedOptions. There is no Context: a job can be stopped between calls, so choose the number of texts per call.
/// - **Memory.** Independent of the number of texts. If the model was opened with Access::mapped, the table of word
///   embeddings is used in place and never copied. Matrices are packed once, in the compute precision. A table of word
///   vectors that is not f32 is copied as f32.
/// - **Errors.** Error{malformed} with rule "embed/..." names the tensor or key that is missing, has a wrong shape or
///   is not finite. Error{unsupported} "embed/activation", "embed/pooling" and "embed/width" are for models that this
///   build cannot run, "embed/part" is only a part of a model. Error{misuse} is an invalid request.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/hash.h"
#include "weighbridge/model.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {

/// How token vectors become one vector.
enum class Pooling : std::uint8_t {
  mean,           ///< their mean
  cls,            ///< the vector of the first token, [CLS]
  max,            ///< the maximum of each component
  mean_sqrt_len,  ///< their sum, divided by the square root of their number
  weightedmean,   ///< their mean, each weighted by its place from 1
  lasttoken       ///< the vector of the last token
};
/// What a text is to its reader: a model may have another prompt for each.
enum class TextRole : std::uint8_t { text, query, document };
/// The precision of products with weights.
enum class Precision : std::uint8_t {
  f32,  ///< exact to 2e-6
  /// Weights are rounded to f16, which halves the memory. On processors with AVX512-FP16, activations are f16 too (each
  /// row scaled by a power of two to avoid overflow), multiplied and summed 64 at a time in f16. On others, everything
  /// but the weights is f32. Weights beyond 65504 are refused.
  f16,
  /// Weights and activations are rounded to bf16, each row scaled by a power of two; sums are f32. Processors with
  /// AVX512-BF16 multiply two elements at once; all others compute the same bits one at a time.
  bf16,
  int8  ///< 8-bit codes for weights (one scale per row) and activations (scale and zero point per token), exact sums
};

std::string_view name(Pooling) noexcept;    ///< "mean", "cls", "max", "mean_sqrt_len", "weightedmean", "lasttoken"
std::string_view name(Precision) noexcept;  ///< "f32", "f16", "bf16", "int8"
/// The pooling with this name, exact spelling; nullopt if there is none.
std::optional<Pooling> pooling_from_name(std::string_view) noexcept;
/// The precision with this name, exact spelling; nullopt if there is none.
std::optional<Precision> precision_from_name(std::string_view) noexcept;

/// How to run a model; the defaults follow the model.
struct EmbedOptions {
  std::optional<Pooling> pooling{};       ///< unset (or 0, below): as the model says
  std::optional<bool> normalize{};        ///< scale each vector to length 1
  std::optional<bool> lower_case{};       ///< lower-case the text before it is tokenized
  std::uint64_t max_length = 0;           ///< tokens per text, [CLS] and [SEP] included; at most the model's positions
  std::uint64_t heads = 0;                ///< attention heads, for a container without metadata
  Precision precision = Precision::f32;   ///< of products with weights
  unsigned threads = 0;                   ///< 0: one for each processor that this process may use
  std::uint64_t batch_tokens = 0;         ///< tokens per batch; 0: 16,384. Affects speed and memory only
  const Tokenizer* vocabulary = nullptr;  ///< in place of the model's own; read when the Embedder is made
  bool allow_part = false;                ///< run a model of which files are missing, or were not given
  std::optional<std::string> prompt{};    ///< the text before each text, for every role; "": none
  std::optional<std::string> prompt_name{};  ///< the same, by its name among the model's prompts
  /// Settings of the model to pass over although this build does not follow them: keys, or files and keys
  /// ("1_Pooling/config.json:KEY"), as the error names them.
  std::vector<std::string> ignore_settings{};

  /// Sets an option of OptionOf::embed (options.h) from its name and its value as text. Error{misuse}: an unknown
  /// option, or an invalid value; the message names the valid ones.
  void set(std::string_view option, std::string_view text);
};

/// What embed() reports of one text.
struct Embedded {
  std::uint64_t tokens = 0;    ///< tokens used
  std::uint64_t replaced = 0;  ///< invalid sequences of UTF-8
  bool truncated = false;      ///< it had more tokens than max_length
  bool operator==(const Embedded&) const = default;
};

/// The digests that name a model and the kind of its vectors.
struct EmbedDigests {
  Digest model{};      ///< content_digest() of the model: of all its tensors
  std::string kind{};  ///< as Embedder::kind() returns it
};

/// A BERT encoder or a table of word vectors, ready to run.
class Embedder {
 public:
  explicit Embedder(Model, const EmbedOptions& = {});  ///< [reads] Finds the encoder's tensors and packs them.
  ~Embedder();
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;

  std::uint64_t dimension() const noexcept;   ///< floats in a vector
  std::uint64_t max_length() const noexcept;  ///< tokens
  Pooling pooling() const noexcept;           ///< in use; the first if there are several
  std::string poolings() const;               ///< the names of all in use, joined by "+"
  bool normalize() const noexcept;            ///< whether vectors are scaled to length 1
  Precision precision() const noexcept;       ///< in use
  unsigned threads() const noexcept;          ///< in use
  /// The model's prompts: names and texts, in the order of the file.
  const std::vector<std::pair<std::string, std::string>>& prompts() const noexcept;
  /// What stands before a text: the prompt of the options; else, of the model's prompts, the default one for a text,
  /// "query" for a query and "document" for a document, as in sentence-transformers; else "".
  std::string_view prompt(TextRole = TextRole::text) const noexcept;
  const std::vector<std::string>& notes() const noexcept;  ///< settings that are unknown or passed over: sentences
  /// [reads] The kind of vectors that this embedder makes: "wbv1:" and 64 digits, a digest of everything that
  /// determines their bits besides texts and prompts: the model's tensors, the vocabulary, and the options in use. It
  /// is equal for the same model in any container and with any number of threads. Vectors may be compared only if their
  /// kinds are equal. Throws Error{unsupported} if the elements of a tensor cannot be read.
  std::string kind(const Context& = {}) const;
  /// [reads] Both digests in one pass over the model.
  EmbedDigests digests(const Context& = {}) const;
  /// [reads] Throws Error{misuse} "misuse/vectors" unless `other` is kind(). For vectors that were stored with their
  /// kind.
  void require_kind(std::string_view other, const Context& = {}) const;
  /// Null if neither the model nor the options have a vocabulary; then only embed_ids() works.
  const WordPiece* tokenizer() const noexcept;

  /// Writes vector i at out[i * dimension()]. `out` must have exactly the size of all vectors; `what` is empty or as
  /// long as `texts`. `prompt` stands before each text; unset: prompt(). Error{misuse}: other sizes, tokenizer() is
  /// null
  /// ("misuse/no-vocabulary"), or no token is left for a model that leaves the prompt out of its pooling.
  void embed(std::span<const std::string_view> texts, std::span<float> out, std::span<Embedded> what = {},
             std::optional<std::string_view> prompt = {}) const;
  std::vector<float> embed(std::string_view text) const;  ///< One text; dimension() floats.
  /// Takes ids as the tokenizer returns them, special ones included. Error{misuse}: an empty sequence, one longer than
  /// the model's positions, an id outside the vocabulary.
  void embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace weighbridge

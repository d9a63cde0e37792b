// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text in, vectors out. Owns Embedder, which runs a BERT encoder from any container that holds one. Leaves opening to
/// open.h, the tokenizer to tokenize.h.
///
/// - **Model.** Tensors by the names of Hugging Face's BertModel ("embeddings.word_embeddings.weight", with or without
///   "bert." before it), of any dtype that casts to f32. Numbers come from the tensors' shapes; the metadata say
///   "num_attention_heads" and may say "num_layers", "layer_norm_eps" (1e-12 where absent), "hidden_act" ("gelu", the
///   exact error function; "gelu_new" and "gelu_pytorch_tanh" are its tanh form), "max_seq_length" (256, or the
///   positions where they are fewer), "pooling_mode" ("mean"), "normalize" (true), "do_lower_case" (true).
/// - **Same bits.** The vector of a text is the same alone, in any batch, in any order and with any number of threads.
///   In f32 and int8 it is the same on any processor too. In f16 there are two kinds of processors, those with
///   AVX512-FP16 and all others: within a kind the bits are the same, between them vectors differ as they do from exact
///   ones.
/// - **Threads.** Every const member may run concurrently; calls of embed() take turns, each with all of the threads
///   that EmbedOptions give. There is no Context: what is to be stopped is stopped between calls, so how many texts a
///   call gets is yours to choose.
/// - **Memory.** Constant in the number of texts. The table of word embeddings is used where it lies and never copied
///   when the model was opened with Access::mapped; matrices are packed once, in the precision that computes.
/// - **Errors.** Error{malformed} with rule "embed/..." names the tensor or the key that is missing, misshapen or not
///   finite; Error{unsupported} "embed/activation", "embed/pooling" and "embed/width" are models that this build does
///   not compute; Error{misuse} is what the caller asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {

/// How the vectors of tokens become one: their mean, that of [CLS], or the largest of each component.
enum class Pooling : std::uint8_t { mean, cls, max };
/// What the products of weights compute in.
enum class Precision : std::uint8_t {
  f32,  ///< exact to 2e-6
  /// Weights rounded to f16, half the memory; where the processor has AVX512-FP16, activations too (each row scaled by
  /// a power of two, so that none overflows), multiplied and summed 64 at a time in f16; elsewhere all else is f32.
  /// Weights past 65504 are refused.
  f16,
  int8  ///< codes of 8 bits for weights (a scale a row) and activations (a scale and a zero point a token), sums exact
};

std::string_view name(Pooling) noexcept;    ///< "mean", "cls", "max"
std::string_view name(Precision) noexcept;  ///< "f32", "f16", "int8"
/// The pooling of this name, exact spelling; nullopt if there is none.
std::optional<Pooling> pooling_from_name(std::string_view) noexcept;
/// The precision of this name, exact spelling; nullopt if there is none.
std::optional<Precision> precision_from_name(std::string_view) noexcept;

/// How a model is run, where it is not to be as the model says.
struct EmbedOptions {
  std::optional<Pooling> pooling{};      ///< unset, or 0 below: as the model says
  std::optional<bool> normalize{};       ///< scale each vector to length 1
  std::optional<bool> lower_case{};      ///< before the text is split into tokens
  std::uint64_t max_length = 0;          ///< tokens of a text, [CLS] and [SEP] included; at most the model's positions
  std::uint64_t heads = 0;               ///< for a container that has no metadata
  Precision precision = Precision::f32;  ///< what products of weights compute in
  unsigned threads = 0;                  ///< 0: one for each processor this process may use
  std::uint64_t batch_tokens = 0;  ///< tokenized before they are computed; 0: 16,384. Changes speed and memory only
  const Tokenizer* vocabulary = nullptr;  ///< in place of the model's own; read when the Embedder is made

  /// Sets an option by its name and what people write for it.
  /// @param option "pooling" or "precision".
  /// @throws Error misuse: another option, or none of its words; the sentence names them.
  void set(std::string_view option, std::string_view text);
  /// The words that set() takes for an option; empty for another option.
  static std::vector<std::string_view> words(std::string_view option);
};

/// What became of one text.
struct Embedded {
  std::uint64_t tokens = 0;    ///< that were used
  std::uint64_t replaced = 0;  ///< invalid sequences of UTF-8
  bool truncated = false;      ///< it had more tokens than max_length
  bool operator==(const Embedded&) const = default;
};

/// A BERT encoder, ready to run.
class Embedder {
 public:
  explicit Embedder(Model, const EmbedOptions& = {});  ///< [reads] Finds the encoder's tensors and packs them.
  ~Embedder();
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;

  std::uint64_t dimension() const noexcept;   ///< floats in a vector
  std::uint64_t max_length() const noexcept;  ///< tokens
  Pooling pooling() const noexcept;           ///< in use
  bool normalize() const noexcept;            ///< whether vectors are scaled to length 1
  Precision precision() const noexcept;       ///< in use
  unsigned threads() const noexcept;          ///< in use
  /// Null: neither the model nor the options have a vocabulary; then only embed_ids() can be used.
  const WordPiece* tokenizer() const noexcept;

  /// Vector i goes to out[i * dimension()]; `out` has exactly their size, `what` is empty or as long as `texts`.
  /// Misuse: other sizes, or tokenizer() is null ("misuse/no-vocabulary").
  void embed(std::span<const std::string_view> texts, std::span<float> out, std::span<Embedded> what = {}) const;
  std::vector<float> embed(std::string_view text) const;  ///< One text; dimension() floats.
  /// Ids as the tokenizer gives them, special ones included. Misuse: an empty sequence, one longer than the model's
  /// positions, an id past the vocabulary.
  void embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace weighbridge

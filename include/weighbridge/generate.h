// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a small language model. Owns Generator (a model ready to run), Session (what it has read so far), Generation (a
/// text in the making) and perplexity(). Leaves opening to open.h, the tokenizer to tokenize.h, adapters to slm.h: a
/// Model that adapt() made runs as any other.
///
/// - **Model.** What an .slm holds, in any container that kept it: the header's numbers as attributes "slm.hidden_size"
///   and so on, tensors by their names, f32, q8_0 and q4_0 as they come, mixed too (readings M4, M8, M9). An
///   architecture of Llama's: RMSNorm, rotary pairs, grouped-query attention, SwiGLU.
/// - **Precision.** f32 computes in f32. q8_0 multiplies its codes with activations of 8 bits that have a scale and a
///   zero point a vector, q4_0 with activations of 8 bits that have a scale for each 32 (blocks that are no multiple of
///   32 become f32 once, when the model is made); sums of codes are exact.
/// - **Same bits.** Logits depend on the ids alone: not on how they were fed, nor on the number of threads, nor on the
///   processor. So does a text, given its Sampling.
/// - **Threads.** A Generator is immutable and may serve any number of sessions at once; their steps take turns, each
///   with all threads that GeneratorOptions give. One Session is used by one thread at a time. There is no Context: a
///   text is stopped by on_text, or by Generation::step() and cancel(); perplexity() takes one.
/// - **Memory.** Weights are packed once, in the precision that computes; the table of embeddings is used where it lies
///   when the model was opened with Access::mapped. A session keeps 2 * layers * kv_heads * head_dim floats a token.
/// - **Errors.** Error{malformed} with rule "generate/..." names the tensor or key that is missing, misshapen or not
///   finite, a model without a tokenizer, and, as tokens are fed, weights whose sums are not finite; "tokenizer/..." is
///   as BytePair says; Error{unsupported} "generate/width" is a model wider than 65,536; Error{misuse} is what the
///   caller asked for. What throws leaves a session as it was.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/model.h"
#include "weighbridge/tokenize.h"

namespace weighbridge {

/// How a model is made ready.
struct GeneratorOptions {
  /// 0: one for each processor this process may use, which is also the most; one for a model of less than 2 MiB.
  unsigned threads = 0;
  /// tokens that a session can hold; 0: as many as the model was made for, which is the most
  std::uint64_t context = 0;
  BytePairOptions tokenizer{};  ///< how texts become ids
};

/// How the next token is drawn: the top_k likeliest are kept, the temperature divides their logits, the likeliest of
/// them are kept until their probabilities reach top_p, and one is drawn. The same seed draws the same text (reading
/// M20).
struct Sampling {
  double temperature = 0;   ///< 0: the likeliest token, of equal ones the lowest id
  std::uint32_t top_k = 0;  ///< 1 to 1024; 0: 1 where the temperature is 0, else 1024
  double top_p = 1;         ///< above 0, at most 1
  std::uint64_t seed = 1;   ///< of the draws
};

/// What ended a text.
enum class Stopped : std::uint8_t {
  eos,       ///< the model's own end of a text
  length,    ///< GenerateOptions::max_tokens
  text,      ///< one of GenerateOptions::stop
  context,   ///< no room for another token
  cancelled  ///< the caller
};
std::string_view name(Stopped) noexcept;  ///< "eos", "length", ...

/// How long, how random, and where to end.
struct GenerateOptions {
  std::uint64_t max_tokens = 256;   ///< to generate at most
  Sampling sampling{};              ///< how each is drawn
  std::vector<std::string> stop{};  ///< texts, not empty, at the first of which the text ends; it is not part of it
  /// Told of each piece of text as soon as it is certain, never half a character; false cancels.
  std::function<bool(std::string_view piece)> on_text{};
};

/// What came of a prompt.
struct Generated {
  std::uint64_t prompt_tokens = 0;    ///< with BOS
  std::vector<std::uint32_t> tokens;  ///< generated, EOS not among them
  std::string text;                   ///< of tokens, without what a stop text cut off
  Stopped stopped = Stopped::length;  ///< what ended it
  double seconds = 0;                 ///< from the first generated token to the last
};

class Session;
class Generation;

/// A language model, ready to run.
class Generator {
 public:
  explicit Generator(Model, const GeneratorOptions& = {});  ///< [reads] Finds the tensors and packs them.
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  std::uint64_t vocabulary() const noexcept;   ///< logits of a token
  std::uint64_t context() const noexcept;      ///< tokens a session can hold
  unsigned threads() const noexcept;           ///< in use
  const BytePair& tokenizer() const noexcept;  ///< the model's own

  /// An empty session. It must not outlive this Generator.
  Session session() const;

 private:
  friend class Session;
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

/// What a model has read so far: ids and their keys and values.
class Session {
 public:
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// The ids that it holds, in order.
  std::span<const std::uint32_t> ids() const noexcept;
  /// Appends ids; logits() are then those behind the last one. Misuse: none, an id past the vocabulary, more than the
  /// context has room for.
  void feed(std::span<const std::uint32_t> ids);
  /// The same, and all their logits, row by row, to `sink` in pieces of whole rows.
  void feed(std::span<const std::uint32_t> ids, const std::function<void(std::span<const float>)>& sink);
  /// Of the token to come, one for each of vocabulary(). Misuse before the first feed().
  std::span<const float> logits() const;
  std::uint32_t likeliest() const;  ///< the lowest id of the largest logit
  /// Forgets all but the first `count` ids. logits() need another feed() then.
  void rewind(std::uint64_t count = 0);

  /// Feeds the prompt, framed by the tokenizer (BOS in front where the session is empty), and generates until something
  /// stops it. An empty prompt in an empty session is BOS alone. Misuse: a prompt of as many tokens as the context has
  /// room for or more, bounds of Sampling, an empty stop text.
  Generated generate(std::string_view prompt, const GenerateOptions& = {});
  /// The same, a token at a time, for callers that have other things to do in between. on_text is not called.
  Generation begin(std::string_view prompt, const GenerateOptions& = {});

 private:
  friend class Generator;
  friend class Generation;
  struct Rep;
  explicit Session(std::unique_ptr<Rep>) noexcept;
  std::unique_ptr<Rep> rep_;
};

/// A text in the making. It must not outlive its Session, which nobody else may use until it has ended.
class Generation {
 public:
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  /// One token more; false: that was all. What throws can be tried again.
  bool step();
  /// Ends it where it is, unless it has ended.
  void cancel();
  /// So far. `text` only ever grows, never by half a character; `stopped` and `seconds` stand once it has ended.
  const Generated& result() const noexcept;

 private:
  friend class Session;
  struct Rep;
  explicit Generation(std::unique_ptr<Rep>) noexcept;
  std::unique_ptr<Rep> rep_;
};

/// How well a model foresees a text.
struct Perplexity {
  std::uint64_t tokens = 0;  ///< scored: all of the text's, BOS not
  double nll = 0;            ///< mean negative log likelihood, natural logarithm
  double perplexity = 0;     ///< e^nll
};
/// Of a text in windows of context - 1 tokens, each behind a BOS. progress counts tokens. Misuse: a text without
/// tokens.
Perplexity perplexity(const Generator&, std::string_view text, const Context& = {});
/// Likewise of ids, BOS not among them.
Perplexity perplexity(const Generator&, std::span<const std::uint32_t> ids, const Context& = {});

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a small language model. Owns Generator (a model ready to run), Session (what it has read so far), Generation (a
/// text being generated) and perplexity(). A Model made by adapt() (slm.h) runs like any other.
///
/// - **Model.** The content of an .slm, in any container that keeps it: the header's numbers as attributes
///   ("slm.hidden_size" and so on), and tensors by name in f32, q8_0, q4_0 or a mix (readings M4, M8, M9). The
///   architecture is Llama's: RMSNorm, rotary pairs, grouped-query attention, SwiGLU.
/// - **Precision.** Products are in f32. A q8_0 or q4_0 weight is multiplied as the number that it stands for, so the
///   results are those of the dequantized model, as closely as f32 computes them. GeneratorPrecision::fast rounds
///   activations to 8 bits.
/// - **Same bits.** Logits depend only on the ids, not on how they were fed, the number of threads or the processor.
///   For a given Sampling, so does the text.
/// - **Threads.** A Generator is immutable and may serve any number of sessions at once; their steps take turns, and
///   each uses all threads of GeneratorOptions. Only one thread may use a Session at a time. There is no Context: stop
///   a text through on_prompt and on_text, or with Generation::step() and cancel(). perplexity() takes one.
/// - **Memory.** Weights are packed once, in the compute precision. If the model was opened with Access::mapped, the
///   embedding table is used in place. A session keeps 2 * layers * kv_heads * head_dim floats per token.
/// - **Errors.** Error{malformed} with rule "generate/..." names a tensor or key that is missing, has a wrong shape or
///   is not finite, a missing tokenizer, or, when tokens are fed, weights whose sums are not finite; "tokenizer/..." is
///   as for BytePair. Error{unsupported} "generate/width" is a model wider than 65,536,
///   "generate/part" only a part of a model. Error{misuse} is an invalid
///   request. A call that throws leaves the session as it was.
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

/// What quantized weights are multiplied with. Weights in f32 are computed in f32 with either.
enum class GeneratorPrecision : std::uint8_t {
  exact,  ///< f32 activations
  /// Activations rounded to 8 bits: for q8_0 with a scale and zero point per vector, for q4_0 with a scale per 32
  /// elements. Sums of codes are exact. q4_0 blocks whose size is not a multiple of 32 are computed as with `exact`.
  fast
};
std::string_view name(GeneratorPrecision) noexcept;  ///< "exact", "fast"

/// How to set up a model.
struct GeneratorOptions {
  /// 0: one for each processor that this process may use, which is also the maximum; one for a model of less than 2
  /// MiB.
  unsigned threads = 0;
  /// tokens that a session can hold; 0: the model's context, which is the maximum
  std::uint64_t context = 0;
  /// `decoded` bounds the key and value cache of a session, which grows with the context.
  Limits limits{};
  BytePairOptions tokenizer{};                               ///< how texts become ids
  GeneratorPrecision precision = GeneratorPrecision::exact;  ///< of products with quantized weights
  bool allow_part = false;                                   ///< run a model of which files are missing

  /// Sets an option of OptionOf::generator (options.h) from its name and its value as text. Error{misuse}: an unknown
  /// option, or an invalid value; the message names the valid ones.
  void set(std::string_view option, std::string_view text);
};

/// How to sample the next token: keep the top_k likeliest, divide their logits by the temperature, keep the likeliest
/// of them until their probabilities reach top_p, and sample one. The same seed gives the same text (reading M20).
struct Sampling {
  double temperature = 0;   ///< 0: always the likeliest token; of equal ones, the lowest id
  std::uint32_t top_k = 0;  ///< 1 to 1024; 0: 1 if the temperature is 0, else 1024
  double top_p = 1;         ///< above 0, at most 1
  std::uint64_t seed = 1;   ///< random seed
};

/// What ended a text.
enum class Stopped : std::uint8_t {
  eos,       ///< the model generated its end-of-text token, or another one that ends a text (BytePair::ends)
  length,    ///< GenerateOptions::max_tokens
  text,      ///< one of GenerateOptions::stop
  context,   ///< no room for another token
  cancelled  ///< the caller cancelled
};
std::string_view name(Stopped) noexcept;  ///< "eos", "length", ...

/// Length, sampling, and where to stop.
struct GenerateOptions {
  std::uint64_t max_tokens = 256;   ///< maximum number to generate
  Sampling sampling{};              ///< how to choose each token
  std::vector<std::string> stop{};  ///< nonempty texts; generation ends at the first one, which is not part of the text
  /// Called with each piece of text as soon as it is final, never with part of a character; return false to cancel.
  std::function<bool(std::string_view piece)> on_text{};
  /// Called before each part of the prompt is computed, with the tokens before it and those of the whole prompt; return
  /// false to cancel. The session is then as before.
  std::function<bool(std::uint64_t done, std::uint64_t total)> on_prompt{};

  /// The same for OptionOf::generate.
  void set(std::string_view option, std::string_view text);
};

/// The result of generation.
struct Generated {
  std::uint64_t prompt_tokens = 0;    ///< with BOS, if there is one
  std::vector<std::uint32_t> tokens;  ///< generated, without the one that ended the text
  std::string text;                   ///< of `tokens`, up to a stop text
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

  std::uint64_t vocabulary() const noexcept;      ///< number of logits
  std::uint64_t context() const noexcept;         ///< tokens a session can hold
  unsigned threads() const noexcept;              ///< in use
  GeneratorPrecision precision() const noexcept;  ///< in use
  const BytePair& tokenizer() const noexcept;     ///< the model's own

  /// An empty session. It must not outlive this Generator.
  Session session() const;

 private:
  friend class Session;
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

/// What a model has read so far: ids with their keys and values.
class Session {
 public:
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// The ids in the session, in order.
  std::span<const std::uint32_t> ids() const noexcept;
  /// Appends ids; logits() are then for the token after the last one. Error{misuse}: no ids, an id outside the
  /// vocabulary, more ids than fit the context.
  void feed(std::span<const std::uint32_t> ids);
  /// The same, and passes the logits after each id to `sink`, in pieces of whole rows.
  void feed(std::span<const std::uint32_t> ids, const std::function<void(std::span<const float>)>& sink);
  /// vocabulary() logits for the next token. Error{misuse} before the first feed().
  std::span<const float> logits() const;
  std::uint32_t likeliest() const;  ///< the id of the largest logit; of equal ones, the lowest
  /// Forgets all but the first `count` ids. Call feed() before logits() then.
  void rewind(std::uint64_t count = 0);

  /// Tokenizes and feeds the prompt (after BOS if the session is empty and the tokenizer adds one), and generates until
  /// something stops it. An empty prompt in an empty session is BOS alone. Error{misuse}: a prompt that leaves no room
  /// in the context, a Sampling value out of range, an empty stop text.
  Generated generate(std::string_view prompt, const GenerateOptions& = {});
  /// The same, one token at a time, for callers with other work in between. Does not call on_text.
  Generation begin(std::string_view prompt, const GenerateOptions& = {});

 private:
  friend class Generator;
  friend class Generation;
  struct Rep;
  explicit Session(std::unique_ptr<Rep>) noexcept;
  std::unique_ptr<Rep> rep_;
};

/// A text being generated. It must not outlive its Session, which must not be used otherwise until generation has
/// ended.
class Generation {
 public:
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  /// Generates one token; false if the text has ended. A step that throws can be repeated.
  bool step();
  /// Ends the text here, unless it has ended.
  void cancel();
  /// The result so far. `text` grows by whole characters; `stopped` and `seconds` are valid once the text has ended.
  const Generated& result() const noexcept;

 private:
  friend class Session;
  struct Rep;
  explicit Generation(std::unique_ptr<Rep>) noexcept;
  std::unique_ptr<Rep> rep_;
};

/// The perplexity of a text under a model.
struct Perplexity {
  std::uint64_t tokens = 0;  ///< scored: all of the text's; without BOS before it, all but the first
  double nll = 0;            ///< mean negative log-likelihood, natural logarithm
  double perplexity = 0;     ///< e^nll
};
/// Computes perplexity in windows of context - 1 tokens, each after a BOS, or where the model's tokenizer puts none
/// before a text, after the token before the window. Progress counts tokens. Error{misuse}: a text without tokens to
/// score.
Perplexity perplexity(const Generator&, std::string_view text, const Context& = {});
/// The same for ids; they do not begin with BOS.
Perplexity perplexity(const Generator&, std::span<const std::uint32_t> ids, const Context& = {});

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// A family of models that turn texts into vectors, as the public Embedder sees it: BERT encoders (bert.cc) and tables
// of word vectors (word_table.cc). Also names a kind of vectors.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/embed.h"
#include "weighbridge/model.h"
#include "weighbridge/tokenize.h"

namespace weighbridge::embed {

// A sequence of ids and the destination of its vector.
struct Sequence {
  const std::uint32_t* ids;
  std::size_t length;
  float* out;
  std::size_t apart = 0;  // the first tokens, which are not pooled
};

class Family {
 public:
  struct Facts {
    std::uint64_t dimension = 0, vocabulary = 0;
    std::uint64_t max_length = 0;  // of a text
    std::uint64_t positions = 0;   // of ids that a caller gives
    std::vector<Pooling> pooling{Pooling::mean};
    bool normalize = true;
    Precision precision = Precision::f32;
  };

  virtual ~Family() = default;
  virtual const Facts& facts() const noexcept = 0;
  virtual unsigned threads() const noexcept = 0;
  virtual const WordPiece* tokenizer() const noexcept = 0;
  // [reads] Names the model, and the kind of its vectors.
  virtual EmbedDigests digests(const Context&) const = 0;
  // Calls take turns. `out` has room for every vector; `what` is empty or as long as `texts`. There is a tokenizer.
  // `prompt` stands before each text.
  virtual void embed(std::span<const std::string_view> texts, std::string_view prompt, std::span<float> out,
                     std::span<Embedded> what) = 0;
  // Ids are below the size of the vocabulary, and as many as there are positions.
  virtual void embed_ids(std::span<const std::span<const std::uint32_t>> texts, std::span<float> out) = 0;
};

// Throws Error{malformed} with rule "embed/<rule>", about this tensor or, if `tensor` is empty, about none.
[[noreturn]] void fail(std::string_view rule, std::string_view tensor, std::string message);

// fail() "key" for a value of the metadata; `wanted` ends the sentence: "a number is needed".
[[noreturn]] void bad_key(std::string_view key, const Value&, const std::string& wanted);
// What the metadata say for a key; nullopt if `value` is null. bad_key() for a value of another kind.
std::optional<bool> truth(std::string_view key, const Value* value);
std::optional<std::uint64_t> positive(std::string_view key, const Value* value);  // a whole number above 0

struct TextRules {
  bool lower_case = true;
  bool frames = true;  // puts [CLS] and [SEP] around a text; else the vocabulary need not have them
};
// With the model's own vocabulary or that of the options; none if neither has one. `table` is the tensor with a row for
// each id, `rows` their number.
std::optional<WordPiece> make_tokenizer(const Model&, const EmbedOptions&, const TextRules&, std::uint64_t rows,
                                        const std::string& table);

// [reads] A BERT encoder; the model has the names of Hugging Face.
std::unique_ptr<Family> make_bert(const Model&, const EmbedOptions&);
// Whether a model is one table of word vectors (StaticEmbedding of sentence-transformers, model2vec), and no encoder.
bool is_word_table(const Model&);
// [reads] Such a table.
std::unique_ptr<Family> make_word_table(const Model&, const EmbedOptions&);

// The name of a kind of vectors: a digest of everything besides the text that decides their bits.

// "mean", "cls+max"
std::string text_of(const std::vector<Pooling>&);

// What a family adds to the facts that all have.
using KindLines = std::vector<std::pair<std::string_view, std::string>>;
// The name under which a tensor counts; none for one that takes no part.
using KindName = std::function<std::optional<std::string_view>(std::string_view tensor)>;

// The modules and the number of kept numbers, if the model states them.
void add_module_lines(const Model&, KindLines&);
// Whether the tensor belongs to a module that the model states.
bool is_of_module(const Model&, std::string_view tensor);

// Reads the model once for both. `words` is null without a vocabulary.
EmbedDigests digests_of(const Model&, const Family::Facts&, const KindLines&, const KindName&, const WordPiece* words,
                        const Context&);

}  // namespace weighbridge::embed

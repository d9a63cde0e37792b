// SPDX-License-Identifier: Apache-2.0
// The encoder itself: runs a batch of sequences through all layers to one vector each. Owns the working memory and how
// a crew of threads shares a batch; leaves forming batches to bert.cc. pool.cc makes the vectors of tokens one.
#pragma once
#include <cstddef>
#include <exception>
#include <span>
#include <vector>

#include "runtime/embed/family.h"
#include "runtime/embed/weights.h"
#include "runtime/kernels/team.h"
#include "weighbridge/embed.h"

namespace weighbridge::bert {

using embed::Sequence;

// The memory that one crew computes in, for `tokens` tokens in sequences of at most `longest`.
class Workspace {
 public:
  Workspace(const Config&, const embed::Chain&, Arithmetic, std::size_t tokens, std::size_t longest, unsigned members);

  float *x, *query_key_value, *context;  // [tokens, hidden], [tokens, 3 hidden], [tokens, hidden]
  float* wide;                           // [tokens, intermediate], in the memory of query_key_value and context
  std::byte* codes;   // [tokens, the wider of the two, rounded up]: activations as products read them, if not as f32
  float* code_scale;  // [tokens]: half and bf16
  kernels::CodedRow* coded;  // [tokens]: int8
  float* scratch(unsigned rank) const noexcept { return scratch_ + rank * scratch_size_; }
  std::vector<float> mixed;                // [tokens, hidden]: the sum of layers, if they are weighted
  std::vector<std::vector<float>> vector;  // of each member: what the modules after the pooling work in
  std::exception_ptr failure;              // the exception of the member that reads the embeddings

 private:
  kernels::Block block_;
  float* scratch_;
  std::size_t scratch_size_;
};

class Step;  // one member's products, in encoder.cc

class Encoder {
 public:
  Encoder(const Config& config, const Weights& weights, Arithmetic arithmetic)
      : config_(config), weights_(weights), arithmetic_(arithmetic) {}

  // All members of a crew call it with the same arguments. Sequences follow each other without padding. An error is
  // left in workspace.failure.
  void run(std::span<const Sequence>, Workspace&, const kernels::Crew&) const noexcept;

 private:
  void embed(std::span<const Sequence>, Workspace&) const;
  void layer(const Layer&, const Linear* next, std::span<const Sequence>, std::size_t tokens, Workspace&, const Step&,
             const kernels::Crew&) const;
  void attend(std::span<const Sequence>, Workspace&, const kernels::Crew&) const;
  // Adds this member's rows of hidden state `state` to the weighted sum of layers.
  void mix(std::size_t state, std::size_t tokens, Workspace&, const kernels::Crew&) const;
  void finish(const Sequence&, const float* rows, std::vector<float>& scratch) const;

  const Config& config_;
  const Weights& weights_;
  const Arithmetic arithmetic_;
};

// How the vectors of tokens become one: each pooling of sentence-transformers, over the tokens after the first `apart`.

// rows [length, width]; apart < length. Writes `width` numbers.
void pool(Pooling, const float* rows, std::size_t length, std::size_t apart, std::size_t width, float* out);

// sum[i] += weight * x[i]; `first`: sum[i] = weight * x[i]. The same bits on every processor.
void add_weighted(const float* x, std::size_t n, float weight, bool first, float* sum);

}  // namespace weighbridge::bert

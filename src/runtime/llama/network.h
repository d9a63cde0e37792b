// SPDX-License-Identifier: Apache-2.0
// The network itself (reading M9): runs tokens of one sequence through all layers to logits. Owns the cache of keys and
// values, the working memory, and how a crew of threads shares a step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/block.h"
#include "runtime/kernels/team.h"
#include "runtime/llama/config.h"
#include "runtime/llama/weights.h"

namespace weighbridge::llama {

// Keys and values of one sequence, head by head, in the layout of Kernels::causal_attention().
class Cache {
 public:
  explicit Cache(const Config&);
  float* keys(std::size_t layer, std::size_t kv_head) const noexcept;
  float* values(std::size_t layer, std::size_t kv_head) const noexcept;
  static std::uint64_t bytes(const Config&) noexcept;

 private:
  const std::size_t kv_heads_, keys_size_, values_size_;  // floats per head
  kernels::Block block_;
};

// The memory that a step computes in.
class Workspace {
 public:
  // Tokens that pass the layers together: enough to make loading the weights cheap.
  static constexpr std::size_t kMaxTokens = 128;

  Workspace(const Config&, std::size_t members);

  float *x, *query, *key, *value, *context, *gate, *up;  // [kMaxTokens, width]
  float* turns;   // [kMaxTokens, 2 head]: cosines and sines in the layout of Kernels::rotate()
  float* logits;  // [kMaxLogits, vocabulary]
  static constexpr std::size_t kMaxLogits = 16;
  // Activations in the forms that products take. With a single token, each member uses row 0 of its own copy.
  struct Codes {
    float* normed;
    std::uint8_t* bytes;
    kernels::CodedRow* rows;  // what `bytes` mean, with GeneratorPrecision::fast
    float* units;             // what they mean otherwise: ProductFixedQ8::unit
    std::byte* blocks;        // in the layout of ProductQ4 or ProductFixedQ4
  };
  Codes shared{};
  std::vector<Codes> own;
  // The scratch memory of a member's kernels.
  float* scratch(std::size_t member) const noexcept { return scratch_ + member * scratch_size_; }

  struct Best {
    alignas(64) float logit;
    std::uint32_t id;
  };
  std::vector<Best> best;  // per member: the best of its share of the last row

 private:
  kernels::Block block_;
  float* scratch_ = nullptr;
  std::size_t scratch_size_;
};

class Network {
 public:
  Network(const Config&, const Weights&);

  // One step of a sequence that has `position` tokens in its cache.
  struct Step {
    std::size_t rows;  // at most Workspace::kMaxTokens
    std::size_t position;
    const Cache& cache;
    Workspace& space;
  };
  // [reads] Sets x of all rows to the embeddings of a step's ids. One caller does so before forward().
  void load(std::span<const std::uint32_t> ids, Workspace&) const;
  // Runs the layers over x of all rows. All members of a crew call this and logits() with the same arguments.
  void forward(const Step&, const kernels::Crew&) const noexcept;
  // Computes the logits of `rows` rows from row `first` of the last forward(), at most kMaxLogits, and the best of the
  // last row.
  void logits(Workspace&, std::size_t first, std::size_t rows, const kernels::Crew&) const noexcept;

 private:
  struct Operand;
  Operand prepare(const float* in, std::size_t width, const float* norm, std::size_t rows,
                  std::span<const Linear* const> users, Workspace&, const kernels::Crew&) const;
  // What a member computes of a product. `next` is the matrix that this member multiplies by afterwards.
  void product(const Linear&, const Linear& next, const Operand&, const float* residual, float* out,
               const kernels::Crew&) const;
  void multiply(const Linear&, const Operand&, const kernels::Product&, const kernels::Range&) const;
  void begin(const Step&, std::size_t row) const;
  void layer(std::size_t index, const Step&, const kernels::Crew&) const;
  void attend(std::size_t index, const Step&, const kernels::Crew&) const;

  const Config& config_;
  const Weights& weights_;
  std::vector<double> frequencies_;  // per pair of a head, in radians per position
};

}  // namespace weighbridge::llama

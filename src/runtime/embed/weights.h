// SPDX-License-Identifier: Apache-2.0
// The weights of an encoder, ready to compute with: matrices packed once, small vectors copied, the table of word
// embeddings in place. Owns the check that every weight is finite.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/embed/config.h"
#include "runtime/embed/modules.h"
#include "runtime/kernels/block.h"
#include "runtime/kernels/kernels.h"
#include "weighbridge/context.h"

namespace weighbridge::bert {

// How this processor computes a precision. widened: f16 weights, everything else f32; half: everything f16.
enum class Arithmetic : std::uint8_t { f32, widened, half, bf16, int8 };
Arithmetic arithmetic_of(Precision) noexcept;

// out = in * w^T + bias, in the model's arithmetic.
struct Linear {
  std::size_t n = 0, k = 0;
  std::vector<float> bias;        // size n, padded to 16
  std::byte* packed = nullptr;    // panels of codes, f16, bf16 or f32, in Weights::panels
  std::vector<float> scale;       // half, bf16 and int8
  std::vector<std::int32_t> sum;  // int8
};

struct Norm {
  std::vector<float> gamma, beta;
};

struct Layer {
  Linear query, key, value, attention_out, up, down;
  Norm attention_norm, out_norm;
};

// The rows of a table that may be larger than all other weights.
class Table {
 public:
  Table() = default;
  Table(Tensor, std::size_t width);
  // Returns row `id`: in place if it can be used there, else copied to `out`.
  const float* row(std::uint32_t id, std::span<float> out) const;
  std::string_view name() const noexcept { return tensor_.name(); }

 private:
  Tensor tensor_;
  std::size_t width_ = 0;
  std::span<const float> in_place_;
  Array copy_;
};

struct Weights {
  Table words;
  std::vector<float> places;  // [positions, hidden]: the position embedding plus that of token type 0
  Norm embedding_norm;
  kernels::Block panels;  // all matrices, one after the other in the order of use
  std::vector<Layer> layers;
  std::vector<float> layer_weights;  // of the hidden states from Config::first_layer on, which are added up
  embed::Chain chain;                // after the pooling
};

// [reads] Throws what fail() throws. `model` must outlive the result.
Weights load_weights(const Model& model, const Config&, Arithmetic, Executor&);

}  // namespace weighbridge::bert

// SPDX-License-Identifier: Apache-2.0
// The weights of a language model, ready to compute with: matrices packed once in the form that their dtype requires;
// the table of embeddings stays in place. Owns the check that every weight is finite.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/payload/elements.h"
#include "runtime/kernels/block.h"
#include "runtime/kernels/kernels.h"
#include "runtime/llama/config.h"
#include "weighbridge/context.h"
#include "weighbridge/generate.h"
#include "weighbridge/model.h"

namespace weighbridge::llama {

// What matrices are multiplied as. q8_0 has a scale for each row, as SLM has it; q8_blocks for each 32 columns.
enum class Form : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q8_blocks };

// out = in * w^T, w [n, k].
struct Linear {
  std::size_t n = 0, k = 0;
  Form form = Form::f32;
  std::byte* packed = nullptr;    // in Weights::panels
  std::vector<float> scale;       // q8_0, padded to 16
  std::vector<std::int32_t> sum;  // the same, of the codes; only if the precision is fast

  // Where a panel of columns begins.
  const std::byte* panel(std::size_t index) const noexcept;
};

struct Layer {
  std::vector<float> attention_norm, ffn_norm;
  Linear query, key, value, out, gate, up, down;
};

// The logical bytes of a part: mapped where possible, else copied.
class Stored {
 public:
  Stored() = default;
  explicit Stored(const Part&);
  explicit Stored(std::vector<std::byte> bytes);
  const std::byte* data() const noexcept { return bytes_.span.data(); }
  std::size_t size() const noexcept { return bytes_.span.size(); }

 private:
  Bytes bytes_;
};

// Rows of the table of embeddings as f32, each read when it is needed.
class Table {
 public:
  Table() = default;
  Table(const Tensor&, std::size_t width);
  void row(std::uint32_t id, float* out) const;  // [reads]

 private:
  std::size_t width_ = 0;
  core::ElementsPtr elements_;
};

struct Weights {
  GeneratorPrecision precision = GeneratorPrecision::exact;
  Table words;
  std::vector<Layer> layers;
  std::vector<float> norm;
  Linear output;
  kernels::Block panels;
  std::size_t packed_bytes = 0;  // size of `panels`
  std::vector<float> zeros;      // a zero bias for every product
};

// How many consecutive heads of keys and values are the same, bit for bit, in every layer.
std::size_t repeated_heads(const Model&, const Config&);

// [reads] Throws what fail() throws. `model` must outlive the result.
Weights load_weights(const Model&, const Config&, GeneratorPrecision, Executor&);

}  // namespace weighbridge::llama

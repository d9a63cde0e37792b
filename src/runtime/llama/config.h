// SPDX-License-Identifier: Apache-2.0
// The sizes of a language model. Reads them from its metadata and compares them with its tensors before anything else
// is read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/model.h"

namespace weighbridge::llama {

struct Config {
  std::size_t vocabulary = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head = 0, ffn = 0, context = 0;
  // Conversions may repeat each key/value head for its group of query heads (reading M8). kv_heads counts the distinct
  // heads; the tensors hold each of them `repeats` times.
  std::size_t repeats = 1;
  std::size_t kv_rows = 0;  // rows of the tensors of keys and values
  float epsilon = 0;
  double theta = 0;
  // What the frequency of each pair of a head's elements is divided by: the scaling of a rotation. Empty: 1.
  std::vector<double> divisors{};
  bool tied = false;

  std::size_t kv_width() const noexcept { return kv_heads * head; }
};

// [reads] Throws what fail() throws. `context` 0: the model's own.
Config read_config(const Model&, std::uint64_t context);

// Throws Error{malformed} with rule "generate/<what>".
[[noreturn]] void fail(std::string_view what, std::string_view tensor, std::string message);

// "layers.3.wq.weight"
std::string layer_name(std::size_t layer, std::string_view part);
// The tensor with this name and shape; one-dimensional if `columns` is 0.
Tensor require(const Model&, const std::string& name, std::size_t rows, std::size_t columns);

}  // namespace weighbridge::llama

// SPDX-License-Identifier: Apache-2.0
// The numbers of a language model, from its metadata and compared with its tensors before anything else is read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weighbridge/model.h"

namespace weighbridge::llama {

struct Config {
  std::size_t vocabulary = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head = 0, ffn = 0, context = 0;
  // Conversions may repeat a head of keys and values over its group (reading M8). kv_heads counts those that differ,
  // and each stands so many times in the tensors.
  std::size_t repeats = 1;
  float epsilon = 0;
  double theta = 0;
  bool tied = false;

  std::size_t kv_width() const noexcept { return kv_heads * head; }
};

// [reads] Throws what fail() throws. `context` 0: as the model says.
Config read_config(const Model&, std::uint64_t context);

// Error{malformed} with rule "generate/<what>".
[[noreturn]] void fail(std::string_view what, std::string_view tensor, std::string message);

// "layers.3.wq.weight"
std::string layer_name(std::size_t layer, std::string_view part);
// The tensor of this name and shape, one dimension where `columns` is 0.
Tensor require(const Model&, const std::string& name, std::size_t rows, std::size_t columns);

}  // namespace weighbridge::llama

// SPDX-License-Identifier: Apache-2.0
// Which type each tensor of a quantized GGUF has: the mixes of llama-quantize as a table. Source: src/llama-quant.cpp
// of github.com/ggml-org/llama.cpp, whose names of tensors the rules read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf/layout.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::gguf {

struct MixTensor {
  Tensor tensor;
  std::uint64_t columns = 0;  // of a row
  std::size_t rank = 0;       // without trailing dimensions of 1
  std::uint64_t matrices = 1;
  const ElementType* type = nullptr;   // what it becomes; null: it keeps its type
  const ElementType* asked = nullptr;  // before its rows had to be divided into blocks
  bool needs_importance = false;       // llama-quantize makes this type only with an importance matrix
};

// The row for a type as `--quantize` and `--tensor-type` name it: a block type that can be encoded, or f32, f16, bf16.
const ElementType* element_type(std::string_view word) noexcept;
// Whether llama.cpp's converter makes a tensor of this name f32 in a file of any type.
bool stays_f32(std::string_view name) noexcept;
// Whether the tensors have llama.cpp's names.
bool has_names_of_llama_cpp(const Model&);
// Orders the tensors as llama-quantize does, by layer and name, and gives each its type. Throws Error{misuse}: an
// option that names no type.
std::vector<MixTensor> mix(const Model&, const Options&);

}  // namespace weighbridge::gguf

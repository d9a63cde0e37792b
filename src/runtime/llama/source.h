// SPDX-License-Identifier: Apache-2.0
// A language model under the names and keys of SLM, whatever container it comes from: GGUF with llama.cpp's names, a
// Hugging Face folder, a llama2.c checkpoint.
#pragma once
#include "weighbridge/model.h"

namespace weighbridge::llama {

// The model itself if it has SLM's keys, else a view with them. Tensors and metadata that have no place there stay.
// [reads] Throws what fail() throws, and Error{unsupported} for what this runtime does not compute, by its name.
Model as_slm(const Model&);

}  // namespace weighbridge::llama

// SPDX-License-Identifier: Apache-2.0
// An encoder under the names and keys of Hugging Face and EMBD, also if it comes from a GGUF with llama.cpp's.
#pragma once
#include "weighbridge/model.h"

namespace weighbridge::bert {

// The model itself, or a view if its metadata are llama.cpp's. Metadata that have no place there stay. Throws what
// fail() throws, and Error{unsupported} for what this runtime does not compute, by its name.
Model as_encoder(const Model&);

}  // namespace weighbridge::bert

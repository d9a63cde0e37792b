// SPDX-License-Identifier: Apache-2.0
// The way back from naming.h: models of other containers, GGUF with llama.cpp's names above all, under the names and
// keys that the formats and the runtimes of this project have. Views: tensors stay where they are.
#pragma once
#include <string>
#include <string_view>

#include "convert/naming.h"

namespace weighbridge::convert {

// A Llama under the names and keys of SLM, from a GGUF, a Hugging Face folder or a llama2.c checkpoint. The model
// itself if it has SLM's keys. Tensors and metadata that have no place there stay. [reads] Throws Error{malformed} with
// rule "generate/<what>" for what is missing or wrong, and Error{unsupported} for what the runtime does not compute, by
// its name.
Model as_slm(const Model&);
// What the GGUF that as_slm() was given calls a tensor or a field of the header, for messages: "blk.3.attn_q.weight"
// for "layers.3.wq.weight", "llama.block_count" for "layer_count". The names of SLM for other containers.
std::string given_tensor(const Model& as_slm, std::string_view name);
std::string given_key(const Model& as_slm, std::string_view field);
// A BERT under the names and keys of Hugging Face and EMBD, from a GGUF; else the model itself. Throws likewise, with
// rule "embed/<what>".
Model as_encoder(const Model&);

// Whether names and metadata of the model are llama.cpp's, and the format `target` is one that holds a single
// architecture under its own names: .slm, .weights.
bool needs_own_names(const Model&, std::string_view target);
// The model as `target` names it, with the tokenizer that the metadata describe, and without metadata that the result
// says in its own way. Blockers: why it cannot be seen so; the model is as it was then.
Named with_own_names(const Model&, std::string_view target);

}  // namespace weighbridge::convert

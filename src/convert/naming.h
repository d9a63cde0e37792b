// SPDX-License-Identifier: Apache-2.0
// Options::gguf.naming: a Llama or a BERT as llama.cpp expects it, with its names, its metadata and its form of the
// tokenizer. A view: no tensor is copied, and rows are reordered while they are read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/view.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

// Takes the names of Hugging Face, of EMBD and of SLM. Throws Error{misuse} if the model is neither a Llama nor a BERT,
// or if it computes what llama.cpp does not compute under this name.
core::Derived named_for_llama_cpp(const Model&);

// The way back from naming.h: models of other containers, GGUF with llama.cpp's names above all, under the names and
// keys that the formats and the runtimes of this project have. Views: tensors stay where they are.

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
core::Derived with_own_names(const Model&, std::string_view target);

// A model's tokenizer as the metadata of llama.cpp (tokenizer.ggml.*), and in what its own program would differ.

struct Vocabulary {
  std::vector<Value::Entry> attributes;
  std::vector<std::string> differences;  // sentences
};
// `rows` of the word embeddings, at least as many as tokens: llama.cpp needs a token for each.
Vocabulary vocabulary_for_llama_cpp(const Model&, const Tokenizer&, std::uint64_t rows);

}  // namespace weighbridge::convert

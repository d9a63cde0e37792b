// SPDX-License-Identifier: Apache-2.0
// Options::gguf.naming: a Llama or a BERT as llama.cpp expects it, with its names, its metadata and its form of the
// tokenizer. A view: no tensor is copied, and rows are reordered while they are read.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/model/view.h"
#include "formats/huggingface/format.h"
#include "weighbridge/convert.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

// Takes the names of Hugging Face, of EMBD and of SLM. Throws Error{misuse} if the model is neither a Llama nor a BERT,
// or if it computes what llama.cpp does not compute under this name.
core::Derived named_for_llama_cpp(const Model&, const GgufOptions& = {});

struct Architecture;  // architectures.h
// The row of the architecture that a config.json names; null: none has it.
const Architecture* architecture_of(const Model&);
// The same for a model that has a row.
core::Derived named_by_architecture(const Model&, const GgufOptions&);
// The row of a decoder that a GGUF with llama.cpp's names is of; null: none.
const Architecture* architecture_of_gguf(const Model&);
// Why a model with llama.cpp's names becomes no folder of transformers; empty: it does, or has other names.
std::string refused_as_folder(const Model&);
// [reads] The same as a folder of transformers has it, for a model that has such a row: names, order of rows,
// config.json.
core::Derived named_for_transformers(const Model&);

// A folder that peft wrote, with the factors of an adapter; and a GGUF that is an adapter.
bool is_peft_adapter(const Model&);
bool is_gguf_adapter(const Model&);
// [reads] The one as the other, by the config.json of the base model, which llama.cpp's names need; back, only where
// the names of peft differ with it. Throws Error{misuse} "misuse/lora-..." for what the other does not have.
core::Derived adapter_for_llama_cpp(const Model&, const std::shared_ptr<const Source>& base, const Context&);
core::Derived adapter_for_peft(const Model&, const std::shared_ptr<const Source>& base, const Context&);

// Whether the model has a tokenizer, also one that only files of its folder hold.
bool has_tokenizer(const Model&);
// The loss of GgufOptions::no_tokenizer.
inline Item tokenizer_left_out() { return {LossKind::tokenizer, "tokenizer", "a tokenizer", "left out, as asked"}; }
// Whether the model has word embeddings under a name of transformers; a selection of its tensors may have none.
bool has_words(const Model&);
// Whether a config.json names an architecture whose names in llama.cpp are known.
bool has_known_names(const Model&);
// Whether named_for_llama_cpp() gives it these names.
bool can_be_named_for_llama_cpp(const Model&);
// Throws Error{misuse} with the nearest one that is known if it names another.
void require_known_names(const Model&);
// Adds general.size_label, of the tensors so far, and what llama.cpp expects of a file whose matrices have this dtype.
void set_file_keys(core::Draft&, DType);

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
// `rules` and `unheld`: in place of the model's tokenizers::kTokenizerRules and kTokenizerUnheld.
Vocabulary vocabulary_for_llama_cpp(const Model&, const Tokenizer&, std::uint64_t rows, std::string_view rules = {},
                                    std::string_view unheld = {});

// The files of a folder for the vocabulary of a GGUF.
struct FolderVocabulary {
  std::vector<std::pair<std::string, Value>> files;  // by name: text, or bytes
  std::vector<std::string> differences;              // from llama.cpp: sentences
  std::string refused;                               // why there are none; empty: there are, or there is no vocabulary
};
FolderVocabulary vocabulary_for_folder(const Model&);

// The vocabulary of pieces in a folder's files: of sentencepiece's, or Unigram in tokenizer.json; nullopt: there is
// none. [reads] Throws Error{misuse} for one that llama.cpp could not use.
std::optional<Vocabulary> vocabulary_of_pieces(const Model&, std::uint64_t rows);
// [reads] The merges in a folder's tokenizer.json, and the ids and marks of special tokens by a folder's files.
std::optional<huggingface::MergesOfFolder> merges_of_folder(const Model&, std::uint64_t rows);
std::vector<Value::Entry> special_tokens(const Model&, std::uint64_t rows);
// [reads] Adds general.* by the folder's model card, its generation_config.json and, listed as changes, its name.
// `parameters` in place of those of its tensors; below 0 for those that an adapter changes.
void describe(const Model&, core::Draft&, core::Derived& out, std::optional<double> parameters = {});
// The value of a member of a JSON object, as written; nullopt for null and where there is no such object.
std::optional<std::string_view> raw_member(std::string_view json, std::string_view name);
// [reads] The templates of conversations in a folder's files, as attributes of a GGUF.
std::vector<Value::Entry> chat_templates(const Model&);

}  // namespace weighbridge::convert

// SPDX-License-Identifier: Apache-2.0
// The descriptor of Hugging Face folders for the registry, the functions that it points to, and its rules.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/reading/format.h"

namespace weighbridge::huggingface {

namespace rules {
#define WB_RULES "formats/huggingface/rules.def"
#include "core/reading/rules.inc"
}  // namespace rules

// The descriptor. `weights` is the format of the folder's files of weights: a folder can hold what they can hold.
core::Format format(const core::Format& weights);

// True for a folder with a configuration, or with weights and a tokenizer or settings.
bool matches(const core::Probe&);
// [reads] The folder as one model. Reports errors and leaves broken tensors out; if the weights cannot be read, the
// model has no tensors. Throws core::Stop on the first error if the findings ask for it, Error{io}, Error{misuse}.
void read(const core::ReadJob&, core::Draft&);
// A tokenizer of merges, what it does besides, and in what it cannot be had.
struct MergesOfFolder {
  Tokenizer tokenizer;
  std::string rules, unheld;  // tokenizers::kTokenizerRules, kTokenizerUnheld
};
// [reads] That of the tokenizer.json among the files, for a model of any architecture with the settings "hf.*" and this
// many rows of word embeddings; nullopt for a tokenizer of another kind, and for a broken one.
std::optional<MergesOfFolder> merges_of(const Place& files, const Model& model, std::uint64_t rows);
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
// Whether the weights of a folder are PyTorch's.
bool has_pickled_weights(const Model&);

}  // namespace weighbridge::huggingface

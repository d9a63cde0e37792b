// SPDX-License-Identifier: Apache-2.0
// The descriptor of Hugging Face folders for the registry, the functions that it points to, and its rules.
#pragma once
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
core::WriteLayout layout(const Model&, const Options&, const Context& = {});
// Whether the weights of a folder are PyTorch's.
bool has_pickled_weights(const Model&);

}  // namespace weighbridge::huggingface

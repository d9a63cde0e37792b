// SPDX-License-Identifier: Apache-2.0
// What a Hugging Face folder is to the registry, and the functions that its descriptor is made of.
#pragma once
#include "core/format.h"

namespace weighbridge::huggingface {

// The descriptor. What a folder holds is what the files of its weights hold, which are of the format `weights`.
core::Format format(const core::Format& weights);

// A configuration, or weights with a tokenizer or settings beside them.
bool matches(const core::Glance&);
// [reads] The folder as one model. Reports; a broken tensor is left out of the model, which has none when the weights
// cannot be read. Throws core::Stop as the findings say, Error{io}, Error{misuse}.
void read(const core::Opening&, core::Draft&);
core::WriteLayout layout(const Model&, const Options&);

}  // namespace weighbridge::huggingface

// SPDX-License-Identifier: Apache-2.0
// What a Hugging Face folder is to the rest of the program, and the functions that its descriptor is made of.
#pragma once
#include <memory>
#include <string>

#include "bundle/huggingface/folder.h"
#include "core/format.h"

namespace weighbridge::huggingface {

// The descriptor, without `matches` and `read`, which are for files: folders come in by load().
const core::Format& format() noexcept;

// [reads] The folder as one model. Reports to `findings`; a broken tensor is left out of the model, which has none when
// the weights cannot be read. Throws core::Stop as the findings say, Error{io}, Error{misuse}.
Model load(const Folder&, const Context&, core::Findings&);
core::WriteLayout layout(const Model&, const Options&);

}  // namespace weighbridge::huggingface

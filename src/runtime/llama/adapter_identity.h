// SPDX-License-Identifier: Apache-2.0
// What an adapter package remembers of its base model (reading M13).
#pragma once
#include "formats/slm_adapter/layout.h"
#include "weighbridge/model.h"

namespace weighbridge::slm {

// [reads] Header, directory and tokenizer section of the file that `base` was opened from. Misuse: it is no .slm.
slm_adapter::Identity identity_of(const Model& base);

}  // namespace weighbridge::slm

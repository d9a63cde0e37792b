// SPDX-License-Identifier: Apache-2.0
// The identity of its base model that an adapter package stores (reading M13).
#pragma once
#include "formats/slm_adapter/layout.h"
#include "weighbridge/model.h"

namespace weighbridge::convert {

// [reads] The identity of the .slm file that `base` was opened from: header, directory and tokenizer section. Throws a
// usage error if the file is no .slm.
slm_adapter::Identity identity_of(const Model& base);
// Throws Error{misuse} unless the package was made for the model with this identity.
void require_identity(const slm_adapter::Identity& base, const Model& package);

}  // namespace weighbridge::convert

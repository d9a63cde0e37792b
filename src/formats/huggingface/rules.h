// SPDX-License-Identifier: Apache-2.0
// The rules of Hugging Face folders as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::huggingface::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/huggingface/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/huggingface/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::huggingface::rules

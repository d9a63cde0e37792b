// SPDX-License-Identifier: Apache-2.0
// The rules of llama2.c checkpoints as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::llama2c::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/llama2c/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/llama2c/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::llama2c::rules

// SPDX-License-Identifier: Apache-2.0
// The rules of PyTorch's checkpoints as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::pytorch::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/pytorch/rules.def"
#undef WB_RULE
inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/pytorch/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::pytorch::rules

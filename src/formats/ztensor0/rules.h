// SPDX-License-Identifier: Apache-2.0
// The rules of zTensor 0.1 as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::ztensor0::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/ztensor0/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/ztensor0/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::ztensor0::rules

// SPDX-License-Identifier: Apache-2.0
// The rules of rules.def as constants.
#pragma once
#include "core/rules.h"

namespace weighbridge::ztensor2::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/ztensor2/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/ztensor2/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::ztensor2::rules

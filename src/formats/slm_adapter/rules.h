// SPDX-License-Identifier: Apache-2.0
// The rules of adapter packages as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::slm_adapter::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/slm_adapter/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/slm_adapter/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::slm_adapter::rules

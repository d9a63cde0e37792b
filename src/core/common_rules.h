// SPDX-License-Identifier: Apache-2.0
// The rules that belong to no format: limit/... and file/.... Formats report the limits, and the registry the rest.
#pragma once
#include "core/rules.h"

namespace weighbridge::core::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "core/common_rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "core/common_rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::core::rules

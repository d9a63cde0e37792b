// SPDX-License-Identifier: Apache-2.0
// The rules of STB as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::stb::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/stb/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/stb/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::stb::rules

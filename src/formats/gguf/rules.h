// SPDX-License-Identifier: Apache-2.0
// The rules of gguf as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::gguf::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/gguf/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/gguf/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::gguf::rules

// SPDX-License-Identifier: Apache-2.0
// The rules of onnx as constants, from rules.def.
#pragma once
#include "core/rules.h"

namespace weighbridge::onnx::rules {

#define WB_RULE WB_RULE_CONSTANT
#include "formats/onnx/rules.def"
#undef WB_RULE

inline constexpr Rule kAll[] = {
#define WB_RULE WB_RULE_ELEMENT
#include "formats/onnx/rules.def"
#undef WB_RULE
};

}  // namespace weighbridge::onnx::rules

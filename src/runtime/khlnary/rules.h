// SPDX-License-Identifier: Apache-2.0
// The rules of KHLNARY modules as constants, from rules.def, and a function that throws one.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "core/reading/findings.h"
#include "core/reading/rules.h"

namespace weighbridge::khlnary::internal::rules {

#define WB_RULES "runtime/khlnary/rules.def"
#include "core/reading/rules.inc"

}  // namespace weighbridge::khlnary::internal::rules

namespace weighbridge::khlnary::internal {

// Throws Error with the rule, worded by core::Findings.
[[noreturn]] inline void refuse(const Rule& rule, core::At at, const core::Said& expected = {},
                                const core::Said& found = {}, const core::Said& detail = {}) {
  throw Error(core::Findings::make(rule, at, expected, found, detail));
}

}  // namespace weighbridge::khlnary::internal

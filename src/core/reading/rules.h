// SPDX-License-Identifier: Apache-2.0
// How a rules.def becomes rules. Each line is one reason to reject a file or to warn:
//
//   WB_RULE(kHeaderTooLarge, "safetensors/header-too-large", file, error, "T1", "the header is longer than ...")
//           identifier       stable text id                  reach severity section  sentence: lower case, no full stop
//
// A rule that must read payload says so after its sentence: `, payload)` if only verify checks it, `, payload_on_open)`
// if open does too, `, either)` if open may find it or leave it to verify. `, whole)`: a part of the model is missing,
// which is only a warning in open.
//
// A room's header expands it in a namespace of its own, to one constant per rule and to the array for
// FormatInfo::rules:
//
//   namespace rules {
//   #define WB_RULES "formats/safetensors/rules.def"
//   #include "core/reading/rules.inc"
//   }
//
// Here are the rules that belong to no format: limit/... and file/.... Formats report the limits, the registry the
// rest.
#pragma once
#include "weighbridge/formats.h"

#define WB_RULE_CONSTANT(identifier, id_, reach_, severity_, section_, sentence_, ...)      \
  inline constexpr Rule identifier{id_, Rule::Reach::reach_, Severity::severity_, section_, \
                                   sentence_ __VA_OPT__(, Rule::Phase::__VA_ARGS__)};
#define WB_RULE_ELEMENT(identifier, id_, reach_, severity_, section_, sentence_, ...) identifier,

namespace weighbridge::core::rules {

#define WB_RULES "core/reading/common_rules.def"
#include "core/reading/rules.inc"

}  // namespace weighbridge::core::rules

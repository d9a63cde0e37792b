// SPDX-License-Identifier: Apache-2.0
// How a rules.def becomes rules. Each line is one reason to reject a file or to warn:
//
//   WB_RULE(kHeaderTooLarge, "safetensors/header-too-large", file, error, "T1", "the header is longer than ...")
//           identifier       stable text id                  reach severity section  sentence: lower case, no full stop
//
// A rule that must read payload says so after its sentence: `, payload)` if only verify checks it, `, payload_on_open)`
// if open does too, `, either)` if open may find it or leave it to verify. `, whole)`: a part of the model is not
// there, which open only warns of.
//
// The format's rules.h expands it twice: to one constant per rule, and to the array in FormatInfo::rules:
//
//   namespace weighbridge::safetensors::rules {
//   #define WB_RULE WB_RULE_CONSTANT
//   #include "formats/safetensors/rules.def"
//   #undef WB_RULE
//   inline constexpr Rule kAll[] = {
//   #define WB_RULE WB_RULE_ELEMENT
//   #include "formats/safetensors/rules.def"
//   #undef WB_RULE
//   };
//   }
#pragma once
#include "weighbridge/formats.h"

#define WB_RULE_CONSTANT(identifier, id_, reach_, severity_, section_, sentence_, ...)      \
  inline constexpr Rule identifier{id_, Rule::Reach::reach_, Severity::severity_, section_, \
                                   sentence_ __VA_OPT__(, Rule::Phase::__VA_ARGS__)};
#define WB_RULE_ELEMENT(identifier, id_, reach_, severity_, section_, sentence_, ...) identifier,

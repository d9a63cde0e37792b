// SPDX-License-Identifier: Apache-2.0
// The rules of npy and npz as constants, from rules.def. A rule about an array exists in both namespaces, and
// ArrayRules refers to those of one.
#pragma once
#include "core/reading/rules.h"

namespace weighbridge::numpy {

constexpr Rule::Reach reach_of(Severity severity, Rule::Reach error) noexcept {
  return severity == Severity::warning       ? Rule::Reach::note
         : severity == Severity::unsupported ? Rule::Reach::tensor
                                             : error;
}

#define WB_ARRAY_RULE_CONSTANT(prefix, reach, identifier, id_, severity_, section_, sentence_, ...)                    \
  inline constexpr Rule identifier{prefix id_, reach_of(Severity::severity_, Rule::Reach::reach), Severity::severity_, \
                                   section_, sentence_ __VA_OPT__(, Rule::Phase::__VA_ARGS__)};

namespace npy {
#define WB_RULE(...)
#define WB_ARRAY_RULE(...) WB_ARRAY_RULE_CONSTANT("npy/", file, __VA_ARGS__)
#include "formats/numpy/rules.def"
#undef WB_ARRAY_RULE
inline constexpr Rule kAll[] = {
#define WB_ARRAY_RULE(identifier, ...) identifier,
#include "formats/numpy/rules.def"
#undef WB_ARRAY_RULE
};
#undef WB_RULE
}  // namespace npy

namespace npz {
#define WB_RULE WB_RULE_CONSTANT
#define WB_ARRAY_RULE(...) WB_ARRAY_RULE_CONSTANT("npz/", tensor, __VA_ARGS__)
#include "formats/numpy/rules.def"
#undef WB_RULE
#undef WB_ARRAY_RULE
inline constexpr Rule kAll[] = {
#define WB_RULE(identifier, ...) identifier,
#define WB_ARRAY_RULE(identifier, ...) identifier,
#include "formats/numpy/rules.def"
#undef WB_RULE
#undef WB_ARRAY_RULE
};
}  // namespace npz

struct ArrayRules {
#define WB_RULE(...)
#define WB_ARRAY_RULE(identifier, ...) const Rule& identifier;
#include "formats/numpy/rules.def"
#undef WB_ARRAY_RULE
#undef WB_RULE
};

#define WB_RULE(...)
#define WB_ARRAY_RULE(identifier, ...) npy::identifier,
inline constexpr ArrayRules kNpyRules{
#include "formats/numpy/rules.def"
};
#undef WB_ARRAY_RULE
#define WB_ARRAY_RULE(identifier, ...) npz::identifier,
inline constexpr ArrayRules kNpzRules{
#include "formats/numpy/rules.def"
};
#undef WB_ARRAY_RULE
#undef WB_RULE

}  // namespace weighbridge::numpy

// SPDX-License-Identifier: Apache-2.0
// The rules of hdf5 and keras as constants, from rules.def. A rule about the HDF5 file exists in both namespaces, and
// Rules refers to those of one.
#pragma once
#include "core/reading/rules.h"

namespace weighbridge::hdf5 {

#define WB_H5_CONSTANT(prefix, identifier, id_, reach_, severity_, section_, sentence_, ...)       \
  inline constexpr Rule identifier{prefix id_, Rule::Reach::reach_, Severity::severity_, section_, \
                                   sentence_ __VA_OPT__(, Rule::Phase::__VA_ARGS__)};

namespace h5 {
#define WB_RULE(...)
#define WB_H5_RULE(...) WB_H5_CONSTANT("hdf5/", __VA_ARGS__)
#define WB_INDEX_RULE WB_RULE_CONSTANT
#include "formats/hdf5/rules.def"
#undef WB_H5_RULE
#undef WB_INDEX_RULE
inline constexpr Rule kAll[] = {
#define WB_H5_RULE(identifier, ...) identifier,
#define WB_INDEX_RULE(identifier, ...) identifier,
#include "formats/hdf5/rules.def"
#undef WB_H5_RULE
#undef WB_INDEX_RULE
};
#undef WB_RULE
}  // namespace h5

#define WB_INDEX_RULE(...)
namespace keras {
#define WB_RULE WB_RULE_CONSTANT
#define WB_H5_RULE(...) WB_H5_CONSTANT("keras/", __VA_ARGS__)
#include "formats/hdf5/rules.def"
#undef WB_RULE
#undef WB_H5_RULE
inline constexpr Rule kAll[] = {
#define WB_RULE(identifier, ...) identifier,
#define WB_H5_RULE(identifier, ...) identifier,
#include "formats/hdf5/rules.def"
#undef WB_RULE
#undef WB_H5_RULE
};
}  // namespace keras

struct Rules {
#define WB_RULE(...)
#define WB_H5_RULE(identifier, ...) const Rule& identifier;
#include "formats/hdf5/rules.def"
#undef WB_H5_RULE
#undef WB_RULE
};

#define WB_RULE(...)
#define WB_H5_RULE(identifier, ...) h5::identifier,
inline constexpr Rules kH5Rules{
#include "formats/hdf5/rules.def"
};
#undef WB_H5_RULE
#define WB_H5_RULE(identifier, ...) keras::identifier,
inline constexpr Rules kKerasRules{
#include "formats/hdf5/rules.def"
};
#undef WB_H5_RULE
#undef WB_RULE
#undef WB_INDEX_RULE

}  // namespace weighbridge::hdf5

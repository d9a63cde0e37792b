// SPDX-License-Identifier: Apache-2.0
// The attributes of an object, from messages in its header or from a fractal heap. Specification IV.A.2.m and v.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "formats/hdf5/object_header.h"
#include "weighbridge/value.h"

namespace weighbridge::hdf5 {

struct Attribute {
  std::string name{};
  Value value{};
  std::uint64_t at = 0;        // in the source
  std::string unknown_type{};  // not empty: the value is the attribute's bytes, of this type
};

// Calls take(attribute) for each; broken(fault) for one that is malformed. Throws Broken if there are more that cannot
// be found.
void read_attributes(File&, const ObjectHeader&, const std::function<void(Attribute)>& take,
                     const std::function<void(const Broken&)>& broken);

}  // namespace weighbridge::hdf5

// SPDX-License-Identifier: Apache-2.0
// The names of what a pickle holds: dictionaries, lists and the states of objects become names with dots; tensors are
// rebuilt, and plain values become Values. Owns which objects are looked into. A budget bounds the walk, since
// containers may repeat and contain one another.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/pytorch/rebuild.h"
#include "formats/pytorch/values.h"
#include "weighbridge/context.h"
#include "weighbridge/value.h"
#include "wire/pickle.h"

namespace weighbridge::pytorch {

// What the walk finds, in the order of the pickle. Names may be any bytes.
class Found {
 public:
  virtual ~Found() = default;
  virtual void tensor(std::string_view name, const Rebuilt&, wire::Pickle::Ref) = 0;
  virtual void value(std::string_view name, Value, wire::Pickle::Ref) = 0;
  // An object of an unknown class, or a container within itself.
  virtual void opaque(std::string_view name, wire::Pickle::Ref, std::string_view why) = 0;
};

// `top` is the name of a value that has none.
WalkEnd walk(const wire::Pickle&, const wire::PickleInput&, const Limits&, std::string_view top, Found&);

// The class or function of an object, "module.name"; or what else the value is.
std::string spell_class(const wire::Pickle&, wire::Pickle::Ref);

}  // namespace weighbridge::pytorch

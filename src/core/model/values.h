// SPDX-License-Identifier: Apache-2.0
// What formats and results share about a Value: its JSON, and one number of an array.
#pragma once
#include <cstddef>
#include <optional>

#include "weighbridge/value.h"
#include "wire/json_writer.h"

namespace weighbridge::core {

// u64 exact, NaN and infinities as text, bytes and foreign items as base64.
void write_value(wire::JsonWriter&, const Value&);

// The little-endian element at `from` as a Value of its own width; nullopt for a dtype that is no number of a Value
// (complex numbers, small floats).
std::optional<Value> number_at(DType, const std::byte* from);

}  // namespace weighbridge::core

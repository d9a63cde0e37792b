// SPDX-License-Identifier: Apache-2.0
// A Value as JSON: u64 exact, NaN and infinities as text, bytes and foreign items as base64.
#pragma once
#include "weighbridge/value.h"
#include "wire/json_writer.h"

namespace weighbridge::core {

void write_value(wire::JsonWriter&, const Value&);

}  // namespace weighbridge::core

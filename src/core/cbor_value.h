// SPDX-License-Identifier: Apache-2.0
// Converts metadata values between CBOR items and Values. Finds duplicate keys, which the reader reports. Formats
// handle types that CBOR lacks.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "weighbridge/value.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"

namespace weighbridge::core {

// The memory left for one file's values. A list or map that exceeds it is kept as its verbatim bytes.
struct ValueBudget {
  std::uint64_t left = 0;
  // False if the budget is exhausted.
  bool take(std::uint64_t bytes) noexcept {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
};
inline constexpr std::uint64_t kValueCost = 128;  // one Value with its content block, its entry in a list or map

// What the width of a float means in a container.
enum class Floats : std::uint8_t {
  own_width,  // part of the value: half, single and double are f16, f32 and f64
  shortest    // not significant: every float is f64, written in the shortest exact form
};

// Reads the next item. Sets `duplicate` to the offset (in the reader's bytes) of the first repeated key of a map. Tags,
// undefined, simple values, integers below -2^63 and maps with keys other than text become foreign values of grammar
// "cbor".
Value read_value(wire::CborReader& in, ValueBudget& budget, std::optional<std::size_t>& duplicate,
                 Floats floats = Floats::own_width);
// Deterministic: map keys keep their order. Throws Error{misuse} for text that is not UTF-8.
void write_value(wire::CborWriter& out, const Value& value, Floats floats = Floats::own_width);

}  // namespace weighbridge::core

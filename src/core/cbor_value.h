// SPDX-License-Identifier: Apache-2.0
// Metadata values between CBOR and the model: items to Values and back. Duplicate keys are found here and reported by
// the reader; types that CBOR cannot say belong to the formats.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "weighbridge/value.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"

namespace weighbridge::core {

// What one file's values may still take in memory. A list or map past it is kept as its verbatim bytes.
struct ValueBudget {
  std::uint64_t left = 0;
  // False when it is spent.
  bool take(std::uint64_t bytes) noexcept {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
};
inline constexpr std::uint64_t kValueCost = 128;  // one Value with its content block, its entry in a list or map

// What the width of a float means in a container.
enum class Floats : std::uint8_t {
  own_width,  // it is part of the value: half, single and double are f16, f32 and f64
  shortest    // nothing: every float is f64, and is written as the shortest that keeps it
};

// The item that waits. `duplicate` becomes the offset (in the reader's bytes) of the first key that a map of it has
// twice. Tags, undefined, simple values, integers below -2^63 and maps with other keys than text are foreign values of
// grammar "cbor".
Value read_value(wire::CborReader& in, ValueBudget& budget, std::optional<std::size_t>& duplicate,
                 Floats floats = Floats::own_width);
// The same bytes for the same value: map keys in the order they have. Throws Error{misuse} for text that is not UTF-8.
void write_value(wire::CborWriter& out, const Value& value, Floats floats = Floats::own_width);

}  // namespace weighbridge::core

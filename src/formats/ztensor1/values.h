// SPDX-License-Identifier: Apache-2.0
// Metadata values between CBOR and the model: items to Values and back. Duplicate keys are found here and reported by
// the reader; types that CBOR, or text, cannot say belong to types.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "weighbridge/value.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor1 {

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

// The item that waits. `duplicate` becomes the offset (in the reader's bytes) of the first key that a map of it has
// twice. Tags, undefined, simple values, integers below -2^63 and maps with other keys than text are foreign values of
// grammar "cbor".
Value read_value(wire::CborReader& in, ValueBudget& budget, std::optional<std::size_t>& duplicate);
// The same bytes for the same value: map keys in the order they have, numbers in their own width.
void write_value(wire::CborWriter& out, const Value& value);

}  // namespace weighbridge::ztensor1

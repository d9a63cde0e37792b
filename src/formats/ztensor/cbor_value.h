// SPDX-License-Identifier: Apache-2.0
// Converts metadata values between CBOR items and Values. Finds duplicate keys, which the reader reports. Formats
// handle the types that CBOR lacks.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/reading/budget.h"
#include "weighbridge/value.h"
#include "wire/cbor_reader.h"
#include "wire/cbor_writer.h"

namespace weighbridge::ztensor {

// Of the memory for the values of one file. A list or map that does not fit is kept as its verbatim bytes.
inline constexpr std::uint64_t kValueCost = 128;  // one Value with its content block, its entry in a list or map

// What the width of a float means in a container.
enum class Floats : std::uint8_t {
  own_width,  // part of the value: half, single and double are f16, f32 and f64
  shortest    // no meaning: every float is f64, written in the shortest exact form
};

// Reads the next item. Sets `duplicate` to the offset (in the reader's bytes) of the first repeated key of a map. Tags,
// undefined, simple values, integers below -2^63 and maps with keys other than text become foreign values of grammar
// "cbor".
Value read_value(wire::CborReader& in, core::Budget& budget, std::optional<std::size_t>& duplicate,
                 Floats floats = Floats::own_width);
// An item of CBOR, verbatim.
Value foreign(std::string_view item);
// Deterministic: map keys keep their order. Throws Error{misuse} for text that is not UTF-8.
void write_value(wire::CborWriter& out, const Value& value, Floats floats = Floats::own_width);

// How attributes in CBOR keep types that their form in the file does not show (reading Y10), in zTensor 1.x and 2.
//
// An additional attribute "weighbridge.types" maps the keys of such attributes to their types. It is a CBOR map, or
// JSON text in version 1.1.x, where root attributes are text:
// clang-format off: a table
//   null bool u8 ... i64 f16 f32 f64 bytes list map   the value in its canonical text (bytes as base64, lists and
//                                                     maps as JSON)
//   u8 ... f64                                        for a number that is not text: the width it had
//   <dtype>[] text[]                                  numbers, texts: a list in the file, or that list as JSON text
//   cbor json                                         a foreign item in base64
//   cbor <base64>                                     the value itself; the file has its text
// clang-format on
//
// Reading restores all values and removes the attribute. If any value does not fit its type, nothing changes.

// This project's own attribute (Y10).
inline constexpr std::string_view kTypesKey = "weighbridge.types";

// The form of a value in the file, and its type for "weighbridge.types" ("" for none).
struct Stated {
  Value value;
  std::string type;
  bool exact = true;  // reading gives the same value
};
// `as_text` if attributes can hold only text; `floats`: what the width of a float means in the file.
Stated state(const Value& value, bool as_text, Floats floats = Floats::own_width);
// Undoes state(). nullopt if the value does not fit the type.
std::optional<Value> restore(const Value& stored, std::string_view type);
// Restores all entries that "weighbridge.types" names and removes it. Changes nothing if any does not fit.
void restore_types(std::vector<Value::Entry>& entries);

}  // namespace weighbridge::ztensor

// SPDX-License-Identifier: Apache-2.0
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
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cbor_value.h"
#include "weighbridge/value.h"

namespace weighbridge::core {

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

}  // namespace weighbridge::core

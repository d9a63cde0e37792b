// SPDX-License-Identifier: Apache-2.0
// How attributes keep types that their own form in the file cannot say (reading Y10).
//
// An attribute "weighbridge.types" beside the others (a map; in version 1.1.x, where root attributes are text, that map
// as JSON text) gives the type of those that do not say it themselves, by key:
// clang-format off: a table
//   null bool u8 ... i64 f16 f32 f64 bytes list map   the value in its canonical text (bytes as base64, lists and
//                                                     maps as JSON)
//   u8 ... f64                                        of a number that is not text: the width it had
//   <dtype>[] text[]                                  numbers, texts: a list in the file, or that list as JSON text
//   cbor json                                         a foreign item in base64
//   cbor <base64>                                     the value itself, of which the file has the text
// clang-format on
//
// On reading, a value that fits its type is restored and the attribute disappears; if any does not fit, all stays as it
// stands.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/value.h"

namespace weighbridge::ztensor1 {

// How a value goes into the file, and the type to note for it ("" for none).
struct Stated {
  Value value;
  std::string type;
  bool exact = true;  // reading gives the same value again
};
// as_text: the attributes hold text only.
Stated state(const Value& value, bool as_text);
// Undoes state(): nullopt when the value is not of that type.
std::optional<Value> restore(const Value& stored, std::string_view type);
// Restores all entries that "weighbridge.types" names and removes it; leaves everything as it is when any does not fit.
void restore_types(std::vector<Value::Entry>& entries);

}  // namespace weighbridge::ztensor1

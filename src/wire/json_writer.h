// SPDX-License-Identifier: Apache-2.0
// How JSON spells texts and numbers, for the writer (weighbridge/json_writer.h) and for what writes a single one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weighbridge/json_writer.h"

namespace weighbridge::wire {

// Appends `text` in double quotes, with the escapes \" \\ \b \f \n \r \t, \u00XX for the other controls below 0x20,
// everything else verbatim. Bytes that are not UTF-8 become U+FFFD each.
void append_json_string(std::string& to, std::string_view text);
// The shortest decimal that reads back as the same number, with a point or an exponent so that it stays a
// floating-point number; "nan", "inf" and "-inf", quotes included, for what JSON has no number for.
void append_json_number(std::string& to, double value);
void append_json_number(std::string& to, float value);

using weighbridge::JsonWriter;

}  // namespace weighbridge::wire

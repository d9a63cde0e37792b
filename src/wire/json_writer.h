// SPDX-License-Identifier: Apache-2.0
// JSON strings and numbers, for JsonWriter and for code that writes a single one.
#pragma once
#include <string>
#include <string_view>

#include "weighbridge/json_writer.h"

namespace weighbridge::wire {

// Appends `text` in double quotes, with the escapes \" \\ \b \f \n \r \t, \u00XX for the other controls below 0x20,
// everything else verbatim. Each invalid UTF-8 byte becomes U+FFFD.
void append_json_string(std::string& to, std::string_view text);
// The shortest decimal that reads back as the same number, with a point or an exponent so that it stays a
// floating-point number. NaN and infinities become "nan", "inf" and "-inf", with the quotes.
void append_json_number(std::string& to, double value);
void append_json_number(std::string& to, float value);

using weighbridge::JsonWriter;

}  // namespace weighbridge::wire

// SPDX-License-Identifier: Apache-2.0
// How a JSON value in a file of a Hugging Face folder becomes the text of an attribute, and back.
#pragma once
#include <string>
#include <string_view>

#include "core/reading/json_file.h"
#include "formats/huggingface/layout.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::huggingface {

using core::JsonObject, core::object_in, core::read_object, core::read_text, core::report_json, core::TextFile;
using core::unquote;
using Member = core::JsonMember;
using Reading = core::JsonReading;

// A JSON value as the text of an attribute. A string loses its quotes unless it would then itself be JSON; anything
// else becomes compact JSON, with numbers spelled as in the file. So a text-only container can keep it, and
// Value::as_bool() and as_f64() can read it.
std::string attribute_text(const Member&);
// The exact inverse: the compact JSON from which attribute_text() makes this text.
std::string attribute_json(std::string_view text);
// Writes the value of a text that must be valid JSON.
void copy_json(wire::JsonWriter&, std::string_view json);
// The same by itself, without spaces.
std::string compact(std::string_view json);

}  // namespace weighbridge::huggingface

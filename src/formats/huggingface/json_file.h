// SPDX-License-Identifier: Apache-2.0
// The JSON files of a Hugging Face folder: how a value of
// JSON becomes the text of an attribute and back.
#pragma once
#include <string>
#include <string_view>

#include "core/json_file.h"
#include "formats/huggingface/layout.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::huggingface {

using core::JsonObject;
using core::object_in;
using core::read_object;
using core::read_text;
using core::report_json;
using core::TextFile;
using core::unquote;
using Member = core::JsonMember;
using Reading = core::JsonReading;

// JSON as the text of an attribute: text that is no JSON itself stands without quotes, all else is compact JSON with
// numbers as they are spelled. So a text-only container keeps it, and Value::as_bool() and as_f64() read it.
std::string attribute_text(const Member&);
// The other way, exactly: the compact JSON that attribute_text() made such a text of.
std::string attribute_json(std::string_view text);
// Writes a value of a text that is valid JSON.
void copy_json(wire::JsonWriter&, std::string_view json);

}  // namespace weighbridge::huggingface

// SPDX-License-Identifier: Apache-2.0
// JSON values as texts of attributes, and back.
#include "formats/huggingface/json_file.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind, wire::JsonReader, wire::JsonString;

constexpr std::uint32_t kAnyDepth = 1024;  // the values have already been read under the caller's limit

void copy(JsonReader& in, wire::JsonWriter& out) {
  std::string scratch;
  switch (in.peek()) {
    case JsonKind::object:
      in.enter_object();
      out.begin_object();
      for (JsonString key; in.next_key(key);) {
        out.key(wire::json_text(key, scratch));
        copy(in, out);
      }
      out.end_object();
      break;
    case JsonKind::array:
      in.enter_array();
      out.begin_array();
      while (in.next_element()) copy(in, out);
      out.end_array();
      break;
    case JsonKind::string: {
      JsonString text;
      in.read_string(text);
      out.string(wire::json_text(text, scratch));
      break;
    }
    default: {
      std::string_view raw;
      in.skip_value(raw);
      out.raw(raw);
    }
  }
}

bool is_json(std::string_view text) {
  JsonReader in(text, kAnyDepth);
  return in.skip_value() && in.finish();
}

}  // namespace

std::string attribute_text(const Member& member) {
  wire::JsonWriter out(wire::JsonWriter::Style::compact);
  if (member.kind == JsonKind::string) {
    std::string text = unquote(member.raw);
    if (!is_json(text)) return text;
    out.string(text);
  } else {
    copy_json(out, member.raw);
  }
  return out.take();
}

std::string attribute_json(std::string_view text) {
  wire::JsonWriter out(wire::JsonWriter::Style::compact);
  if (is_json(text))
    copy_json(out, text);
  else
    out.string(text);
  return out.take();
}

void copy_json(wire::JsonWriter& out, std::string_view json) {
  JsonReader in(json, kAnyDepth);
  copy(in, out);
}

std::string compact(std::string_view json) {
  wire::JsonWriter out;
  copy_json(out, json);
  return out.take();
}

}  // namespace weighbridge::huggingface

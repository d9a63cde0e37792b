// SPDX-License-Identifier: Apache-2.0
// Reads the JSON files of a place within the caller's limits: the members of one object at a time, each value verbatim.
// Reports what is wrong with any of these files by the rules of the format.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/words.h"
#include "core/reading/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"
#include "wire/json_reader.h"

namespace weighbridge::core {

// The rules for invalid JSON files.
struct JsonRules {
  const Rule& syntax;         // not JSON
  const Rule& root;           // the wrong kind of value
  const Rule& duplicate_key;  // a repeated key
};

// A file of the place as text.
struct TextFile {
  std::string_view name;
  bool present = false;
  std::shared_ptr<const Source> source{};     // null: absent
  std::shared_ptr<const std::string> text{};  // null: absent, or larger than Limits::header (reported)
};

// The context of every step of reading the files of a place.
struct Reading {
  const Place& place;
  const Limits& limits;
  Findings& findings;
  std::vector<std::shared_ptr<const Source>> sources{};  // of all files read

  // The sink for findings about this file. They do not name it if it is the file that was given.
  Findings in(const std::shared_ptr<const Source>& file) const {
    return place.file() == file ? findings : findings.in(file);
  }
  Findings in(const TextFile& file) const { return file.source ? in(file.source) : findings; }
};
// The same, with the rules for JSON files.
struct JsonReading : Reading {
  JsonReading(const Place& where, const Limits& bounds, Findings& sink, const JsonRules& json)
      : Reading{.place = where, .limits = bounds, .findings = sink}, rules(json) {}
  const JsonRules& rules;
};

// Follows links, because the format fixes the name.
TextFile read_text(JsonReading&, std::string_view name);
// The text of an open file.
TextFile text_of_file(JsonReading&, std::string_view name, const std::shared_ptr<const Source>&);

struct JsonMember {
  std::string key;
  wire::JsonKind kind = wire::JsonKind::none;
  std::string_view raw;  // the value as written
};

// Members in the order of the text, keys unique.
struct JsonObject {
  TextFile file;
  std::vector<JsonMember> members;

  const JsonMember* find(std::string_view key) const noexcept;
  // The member's value if it is text, a boolean, ...; nullopt if absent or of another kind.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::uint64_t offset(const JsonMember& member) const noexcept {
    return static_cast<std::uint64_t>(member.raw.data() - file.text->data());
  }
};

// The object in the file; nullopt if the file is absent, or invalid (reported).
std::optional<JsonObject> read_object(JsonReading&, std::string_view name);
// Reads the value of one key in place, so that members with millions of entries are not read twice. Must consume the
// value, or leave the reader failed.
struct MemberReader {
  std::string_view key;
  std::function<void(wire::JsonReader&)> read;
};
// The members of an object inside a text that was already read; nullopt if `raw` is not an object. A MemberReader, if
// given, reads the first member with its key.
std::optional<JsonObject> object_in(JsonReading&, const TextFile&, std::string_view raw, const MemberReader* = nullptr);

// Reports an error in the text; `raw` gives the offset in the file.
void report_json(JsonReading&, const TextFile&, std::string_view raw, const wire::JsonError&);
// The text of a JSON string as written.
std::string unquote(std::string_view raw);

// The text of a JSON object with its members and those of the objects in it edited. `edit` returns nullopt to keep a
// member, an empty text to leave it out, and else the value's new text. What is not JSON stays.
using EditMember = std::function<std::optional<std::string>(std::string_view name, std::string_view value)>;
std::string with_members(std::string_view json, const EditMember& edit);

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
// The JSON files of a place, under the caller's limits: one object's members at a time, each value verbatim. Owns the
// findings that any of these files can give, by the rules of the format that reads them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/place.h"
#include "weighbridge/source.h"
#include "wire/json_reader.h"

namespace weighbridge::core {

// The rules that a broken JSON file breaks.
struct JsonRules {
  const Rule& syntax;         // it is no JSON
  const Rule& root;           // it holds another kind of value than it must
  const Rule& duplicate_key;  // a key stands twice
};

// A file of the place as text.
struct TextFile {
  std::string_view name;
  bool present = false;
  std::shared_ptr<const Source> source{};     // null: absent
  std::shared_ptr<const std::string> text{};  // null: absent, or larger than Limits::header, which has been reported
};

// What every step of reading JSON files of a place has at hand.
struct JsonReading {
  const Place& place;
  const Limits& limits;
  Findings& findings;
  const JsonRules& rules;
  std::vector<std::shared_ptr<const Source>> sources{};  // of all that was read

  // For what is wrong with that file, which is not named where it is the one that was asked about.
  Findings in(const Source& file) const { return place.file().get() == &file ? findings : findings.in(file); }
  Findings in(const TextFile& file) const { return file.source ? in(*file.source) : findings; }
};

// Links are followed: the name is one that the format fixes.
TextFile read_text(JsonReading&, std::string_view name);
// Of a file that is open already.
TextFile text_of_file(JsonReading&, std::string_view name, const std::shared_ptr<const Source>&);

struct JsonMember {
  std::string key;
  wire::JsonKind kind = wire::JsonKind::none;
  std::string_view raw;  // the value as it is spelled
};

// Members in the order of the text, keys unique.
struct JsonObject {
  TextFile file;
  std::vector<JsonMember> members;

  const JsonMember* find(std::string_view key) const noexcept;
  // The member's value when it is text, a boolean, ...; nullopt where it is not there or of another kind.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::uint64_t offset(const JsonMember& member) const noexcept {
    return static_cast<std::uint64_t>(member.raw.data() - file.text->data());
  }
};

// The file's one object; nullopt when there is none or it is broken, which has been reported.
std::optional<JsonObject> read_object(JsonReading&, std::string_view name);
// The members of an object inside a text that has been read already; nullopt when `raw` is no object.
std::optional<JsonObject> object_in(JsonReading&, const TextFile&, std::string_view raw);

// Reports what is wrong with the text, at the place in the file where `raw` begins.
void report_json(JsonReading&, const TextFile&, std::string_view raw, const wire::JsonError&);
// The text in a JSON string as it is spelled.
std::string unquote(std::string_view raw);

}  // namespace weighbridge::core

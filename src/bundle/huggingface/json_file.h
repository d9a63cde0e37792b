// SPDX-License-Identifier: Apache-2.0
// The JSON files of a folder, under the caller's limits: one object's members at a time, each value verbatim. Owns the
// findings that any of these files can give, and how a value of JSON becomes the text of an attribute and back.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/huggingface/folder.h"
#include "core/findings.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"
#include "weighbridge/value.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace weighbridge::huggingface {

// A file of the folder as text.
struct TextFile {
  std::string_view name;
  bool present = false;
  std::shared_ptr<const Source> source{};     // null: absent
  std::shared_ptr<const std::string> text{};  // null: absent, or larger than Limits::header, which has been reported
};

// What every step of reading a folder has at hand.
struct Reading {
  const Folder& folder;
  const Limits& limits;
  core::Findings& findings;
  std::vector<std::shared_ptr<const Source>> sources{};  // of all that was read

  // For what is wrong with that file.
  core::Findings in(const TextFile& file) const { return file.source ? findings.in(*file.source) : findings; }
};

TextFile read_text(Reading&, std::string_view name);

struct Member {
  std::string key;
  wire::JsonKind kind = wire::JsonKind::none;
  std::string_view raw;  // the value as it is spelled
};

// Members in the order of the text, keys unique.
struct JsonObject {
  TextFile file;
  std::vector<Member> members;

  const Member* find(std::string_view key) const noexcept;
  // The member's value when it is text, a boolean, ...; nullopt where it is not there or of another kind.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::uint64_t offset(const Member& member) const noexcept {
    return static_cast<std::uint64_t>(member.raw.data() - file.text->data());
  }
};

// The file's one object; nullopt when there is none or it is broken, which has been reported.
std::optional<JsonObject> read_object(Reading&, std::string_view name);
// The members of an object inside a text that has been read already; nullopt when `raw` is no object.
std::optional<JsonObject> object_in(Reading&, const TextFile&, std::string_view raw);

// Reports what is wrong with the text, at the place in the file where `raw` begins.
void report_json(Reading&, const TextFile&, std::string_view raw, const wire::JsonError&);
// The text in a JSON string as it is spelled.
std::string unquote(std::string_view raw);

// JSON as the text of an attribute: text that is no JSON itself stands without quotes, all else is compact JSON with
// numbers as they are spelled. So a text-only container keeps it, and Value::as_bool() and as_f64() read it.
std::string attribute_text(const Member&);
// The other way, exactly: the compact JSON that attribute_text() made such a text of.
std::string attribute_json(std::string_view text);
// Writes a value of a text that is valid JSON.
void copy_json(wire::JsonWriter&, std::string_view json);

}  // namespace weighbridge::huggingface

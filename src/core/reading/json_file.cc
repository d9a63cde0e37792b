// SPDX-License-Identifier: Apache-2.0
// Parses JSON files to members, and members to values.
#include "core/reading/json_file.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/order.h"
#include "core/model/words.h"
#include "core/reading/budget.h"
#include "core/reading/rules.h"

namespace weighbridge::core {
namespace {

using wire::JsonKind, wire::JsonReader, wire::JsonString;

// The memory per member in addition to its text. A file of 100 MB can have ten million members, so they count against
// Limits::memory.
constexpr std::uint64_t kMemberCost = 256;

void find_duplicates(JsonReading& reading, const JsonObject& object) {
  const auto order =
      base::order_by(object.members.size(), [&](std::uint32_t i) { return std::string_view(object.members[i].key); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const JsonMember& later = object.members[order[i]];
    if (object.members[order[i - 1]].key == later.key)
      reading.in(object.file)
          .report(reading.rules.duplicate_key, {.offset = object.offset(later)}, {}, in_quotes(later.key, kWhole));
  }
}

}  // namespace

TextFile read_text(JsonReading& reading, std::string_view name) {
  const auto source = reading.place.open(name);
  return source ? text_of_file(reading, name, source) : TextFile{.name = name};
}

TextFile text_of_file(JsonReading& reading, std::string_view name, const std::shared_ptr<const Source>& source) {
  TextFile out{.name = name, .present = true, .source = source};
  reading.sources.push_back(source);
  if (source->size() > reading.limits.header) {
    reading.in(out).report(rules::kLimitHeader, {.offset = 0}, at_most(reading.limits.header, " bytes"),
                           {source->size(), " bytes"});
    return out;
  }
  auto text = std::make_shared<std::string>(whole_text(*source, reading.limits, name));
  reading.in(out).tree(Grammar::json, Span::Kind::structure, 0, *text, "JSON");
  out.text = std::move(text);
  return out;
}

const JsonMember* JsonObject::find(std::string_view key) const noexcept {
  const auto found = std::ranges::find(members, key, &JsonMember::key);
  return found == members.end() ? nullptr : &*found;
}

std::optional<std::string> JsonObject::text(std::string_view key) const {
  const JsonMember* const member = find(key);
  if (member == nullptr || member->kind != JsonKind::string) return std::nullopt;
  return unquote(member->raw);
}

std::optional<bool> JsonObject::boolean(std::string_view key) const {
  const JsonMember* const member = find(key);
  if (member == nullptr || member->kind != JsonKind::boolean) return std::nullopt;
  return member->raw == "true";
}

void report_json(JsonReading& reading, const TextFile& file, std::string_view raw, const wire::JsonError& error) {
  const At at{.offset = static_cast<std::uint64_t>(raw.data() - file.text->data()) + error.offset};
  if (error.code == wire::JsonErrorCode::too_deep)
    reading.in(file).report(rules::kLimitDepth, at, at_most(reading.limits.depth));
  else
    reading.in(file).report(reading.rules.syntax, at, {}, {}, error.sentence);
}

std::optional<JsonObject> object_in(JsonReading& reading, const TextFile& file, std::string_view raw,
                                    const MemberReader* special) {
  JsonObject out{.file = file, .members = {}};
  Budget kept(reading.limits.memory);
  Findings findings = reading.in(file);
  JsonReader in(raw, reading.limits.depth);
  if (!in.enter_object()) {
    if (!in.ok()) report_json(reading, file, raw, in.error());
    return std::nullopt;
  }
  for (JsonString key; in.next_key(key);) {
    JsonMember member;
    std::string scratch;
    member.key = wire::json_text(key, scratch);
    member.kind = in.peek();
    if (special != nullptr && member.key == special->key) {
      const std::size_t at = in.offset();
      std::exchange(special, nullptr)->read(in);
      if (!in.ok()) break;
      member.raw = raw.substr(at, in.offset() - at);
    } else if (!in.skip_value(member.raw)) {
      break;
    }
    out.members.push_back(std::move(member));
    if (!kept.keep(findings, {.offset = out.offset(out.members.back())}, 1, kMemberCost)) return std::nullopt;
  }
  if (!in.ok() || !in.finish()) {
    report_json(reading, file, raw, in.error());
    return std::nullopt;
  }
  find_duplicates(reading, out);
  return out;
}

std::optional<JsonObject> read_object(JsonReading& reading, std::string_view name) {
  const TextFile file = read_text(reading, name);
  if (!file.text) return std::nullopt;
  const std::uint64_t before = reading.findings.errors();
  auto object = object_in(reading, file, *file.text);
  if (!object && reading.findings.errors() == before)
    reading.in(file).report(reading.rules.root, {.offset = 0}, "an object");
  return object;
}

std::string unquote(std::string_view raw) {
  std::string out;
  wire::unescape(raw.substr(1, raw.size() - 2), out);
  return out;
}

std::string with_members(std::string_view json, const EditMember& edit) {
  constexpr std::uint32_t kDeepest = 16;
  std::string out;
  std::size_t copied = 0;  // of `json`, or left out
  const auto offset = [&](std::string_view in) { return static_cast<std::size_t>(in.data() - json.data()); };
  const auto rewrite = [&](const auto& self, std::string_view object, std::uint32_t depth) -> void {
    JsonReader in(object);
    if (depth == 0 || !in.enter_object()) return;
    std::string scratch;
    std::size_t end = offset(object) + object.find('{') + 1;  // of the members that are kept
    bool first = true;
    for (JsonString key; in.next_key(key);) {
      const std::string name(wire::json_text(key, scratch));
      std::string_view value;
      if (!in.skip_value(value)) return;
      std::size_t next = offset(value) + value.size();
      const std::optional<std::string> edited = edit(name, value);
      if (edited && edited->empty()) {
        // With the comma before it, or of the first one with the comma behind it.
        if (const std::size_t comma = json.find_first_not_of(" \t\r\n", next);
            first && comma != json.npos && json[comma] == ',')
          next = comma + 1;
        out.append(json.substr(copied, end - copied));
        copied = end = next;
        continue;
      }
      if (edited) {
        out.append(json.substr(copied, offset(value) - copied)).append(*edited);
        copied = next;
      } else if (value.starts_with('{')) {
        self(self, value, depth - 1);
      }
      first = false;
      end = next;
    }
  };
  rewrite(rewrite, json, kDeepest);
  return out.append(json.substr(copied));
}

}  // namespace weighbridge::core

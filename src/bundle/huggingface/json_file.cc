// SPDX-License-Identifier: Apache-2.0
// JSON files into members, members into attributes' texts.
#include "bundle/huggingface/json_file.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "bundle/huggingface/rules.h"
#include "core/common_rules.h"
#include "core/words.h"

namespace weighbridge::huggingface {
namespace {

using wire::JsonKind;
using wire::JsonReader;
using wire::JsonString;

// What a member takes in memory beside its text. A file of 100 MB can hold ten million of them, so they stand under
// Limits::memory.
constexpr std::uint64_t kMemberCost = 256;
constexpr std::uint32_t kAnyDepth = 1024;  // of values that were read under a limit already

void find_duplicates(Reading& reading, const JsonObject& object) {
  std::vector<std::size_t> order(object.members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) -> std::string_view { return object.members[i].key; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Member& later = object.members[order[i]];
    if (object.members[order[i - 1]].key == later.key)
      reading.in(object.file)
          .report(rules::kDuplicateKey, {.offset = object.offset(later)}, {}, core::quoted(later.key));
  }
}

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

TextFile read_text(Reading& reading, std::string_view name) {
  TextFile out{.name = name};
  const auto source = reading.folder.file(name);
  if (!source) return out;
  out.present = true;
  out.source = source;
  reading.sources.push_back(source);
  if (source->size() > reading.limits.header) {
    reading.in(out).report(core::rules::kLimitHeader, {.offset = 0},
                           "at most " + std::to_string(reading.limits.header) + " bytes",
                           std::to_string(source->size()) + " bytes");
    return out;
  }
  auto text = std::make_shared<std::string>(base::to_size(source->size()), '\0');
  if (!text->empty()) source->read_at(0, std::as_writable_bytes(std::span(*text)));
  out.text = std::move(text);
  return out;
}

const Member* JsonObject::find(std::string_view key) const noexcept {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? nullptr : &*found;
}

std::optional<std::string> JsonObject::text(std::string_view key) const {
  const Member* const member = find(key);
  if (member == nullptr || member->kind != JsonKind::string) return std::nullopt;
  return unquote(member->raw);
}

std::optional<bool> JsonObject::boolean(std::string_view key) const {
  const Member* const member = find(key);
  if (member == nullptr || member->kind != JsonKind::boolean) return std::nullopt;
  return member->raw == "true";
}

void report_json(Reading& reading, const TextFile& file, std::string_view raw, const wire::JsonError& error) {
  const core::At at{.offset = static_cast<std::uint64_t>(raw.data() - file.text->data()) + error.offset};
  if (error.code == wire::JsonErrorCode::too_deep)
    reading.in(file).report(core::rules::kLimitDepth, at, "at most " + std::to_string(reading.limits.depth));
  else
    reading.in(file).report(rules::kJson, at, {}, {}, error.sentence);
}

std::optional<JsonObject> object_in(Reading& reading, const TextFile& file, std::string_view raw) {
  JsonObject out{.file = file, .members = {}};
  JsonReader in(raw, reading.limits.depth);
  if (!in.enter_object()) {
    if (!in.ok()) report_json(reading, file, raw, in.error());
    return std::nullopt;
  }
  for (JsonString key; in.next_key(key);) {
    Member member;
    std::string scratch;
    member.key = wire::json_text(key, scratch);
    member.kind = in.peek();
    if (!in.skip_value(member.raw)) break;
    out.members.push_back(std::move(member));
    if (out.members.size() > reading.limits.memory / kMemberCost) {
      reading.in(file).report(core::rules::kLimitMemory, {.offset = out.offset(out.members.back())},
                              "at most " + std::to_string(reading.limits.memory) + " bytes");
      return std::nullopt;
    }
  }
  if (!in.ok() || !in.finish()) {
    report_json(reading, file, raw, in.error());
    return std::nullopt;
  }
  find_duplicates(reading, out);
  return out;
}

std::optional<JsonObject> read_object(Reading& reading, std::string_view name) {
  const TextFile file = read_text(reading, name);
  if (!file.text) return std::nullopt;
  const std::uint64_t before = reading.findings.errors();
  auto object = object_in(reading, file, *file.text);
  if (!object && reading.findings.errors() == before)
    reading.in(file).report(rules::kJsonRoot, {.offset = 0}, "an object");
  return object;
}

std::string unquote(std::string_view raw) {
  std::string out;
  wire::unescape(raw.substr(1, raw.size() - 2), out);
  return out;
}

std::string attribute_text(const Member& member) {
  wire::JsonWriter out;
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
  wire::JsonWriter out;
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

}  // namespace weighbridge::huggingface

// SPDX-License-Identifier: Apache-2.0
// Members that several results share.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/convert.h"
#include "weighbridge/error.h"
#include "weighbridge/json.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/recover.h"

namespace weighbridge::results {

// Writes a text, or null if it is empty.
inline void text_or_null(JsonWriter& out, std::string_view key, std::string_view text) {
  out.key(key);
  text.empty() ? out.null() : out.string(text);
}
template <class Number> void number(JsonWriter& out, std::string_view key, Number value) { out.key(key).number(value); }
inline void number_or_null(JsonWriter& out, std::string_view key, const std::optional<std::uint64_t>& number) {
  out.key(key);
  number ? out.u64(*number) : out.null();
}
// The members that several results have, spelled once: "tensors" and "parts" are numbers of them, or lists.
inline constexpr std::string_view kTensors = "tensors", kParts = "parts";
// The first members of a result about a file.
inline void add_path(JsonWriter& out, std::string_view path) {
  out.member("schema", std::uint64_t{kJsonSchema});
  out.member("path", path);
}
// An object with the members that `members` writes.
template <class Members> std::string object(Members&& members) {
  JsonWriter out(JsonWriter::Style::shown);
  out.begin_object();
  members(out);
  out.end_object();
  return out.take();
}
// The same as a result of its own, about a file or not.
template <class Members> std::string result(Members&& members) {
  return object([&](JsonWriter& out) {
    out.member("schema", std::uint64_t{kJsonSchema});
    members(out);
  });
}
template <class Members> std::string result(std::string_view path, Members&& members) {
  return object([&](JsonWriter& out) {
    add_path(out, path);
    members(out);
  });
}
// The same as an object of a list of files.
template <class Members> std::string object_of_file(std::string_view path, Members&& members) {
  return object([&](JsonWriter& out) {
    out.member("path", path);
    members(out);
  });
}
// A member that is a list; `write(item)` writes each item.
template <class Items, class Write> void list(JsonWriter& out, std::string_view key, const Items& items, Write write) {
  out.key(key).begin_array();
  for (const auto& item : items) write(item);
  out.end_array();
}
// The same for a list of objects: `write(item)` writes the members of each.
template <class Items, class Write>
void objects(JsonWriter& out, std::string_view key, const Items& items, Write write) {
  list(out, key, items, [&](const auto& item) {
    out.begin_object();
    write(item);
    out.end_object();
  });
}
template <class Texts> void texts(JsonWriter& out, std::string_view key, const Texts& all) {
  list(out, key, all, [&](std::string_view text) { out.string(text); });
}
inline void shape(JsonWriter& out, Shape dims) {
  list(out, "shape", dims, [&](std::uint64_t dim) { out.u64(dim); });
}
// An array of items.
void items(JsonWriter&, std::string_view key, const std::vector<Item>&);
// What undoing a journal does.
void steps(JsonWriter&, const std::vector<RecoveryStep>&);
// "findings", and "findings_total" if the report kept fewer.
void findings(JsonWriter&, const Report&);

}  // namespace weighbridge::results

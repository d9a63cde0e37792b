// SPDX-License-Identifier: Apache-2.0
// JSON into a string: same calls, same bytes. Owns spelling only; order and uniqueness of keys are the caller's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weighbridge::wire {

// Appends `text` in double quotes, with the escapes \" \\ \b \f \n \r \t, \u00XX for the other controls below 0x20,
// everything else verbatim. Bytes that are not UTF-8 become U+FFFD each.
void append_json_string(std::string& to, std::string_view text);
// The shortest decimal that reads back as the same number, with a point or an exponent so that it stays a
// floating-point number; "nan", "inf" and "-inf", quotes included, for what JSON has no number for.
void append_json_number(std::string& to, double value);
void append_json_number(std::string& to, float value);

class JsonWriter {
 public:
  // compact: no white space. indented: two spaces a level, one member or element a line, no line end after the root
  // value. shown: compact, and what could steer a terminal is escaped: the same text to a parser, harmless to people.
  enum class Style : std::uint8_t { compact, indented, shown };
  explicit JsonWriter(Style style = Style::compact) : style_(style) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  // Inside an object only; the member's value follows.
  void key(std::string_view name);

  void string(std::string_view text);
  void u64(std::uint64_t value);
  void i64(std::int64_t value);
  void number(double value);
  void number(float value);
  void boolean(bool value);
  void null();
  // Base64 in a string.
  void bytes(std::span<const std::byte> data);
  // A JSON value as it is; the caller vouches for it.
  void raw(std::string_view json);

  // What was written so far; a complete text once every begin has its end.
  const std::string& text() const noexcept { return out_; }
  std::string take() noexcept { return std::move(out_); }

 private:
  void begin(char bracket);
  void end(char bracket);
  void separate();
  void new_line();
  void append(std::string_view text);

  Style style_;
  bool after_key_ = false;
  std::vector<bool> used_{};  // for each open container: something stands in it
  std::string out_{};
};

// A key and its value: what most members are.
inline void member(JsonWriter& out, std::string_view key, std::string_view text) {
  out.key(key);
  out.string(text);
}
inline void member(JsonWriter& out, std::string_view key, std::uint64_t number) {
  out.key(key);
  out.u64(number);
}

}  // namespace weighbridge::wire

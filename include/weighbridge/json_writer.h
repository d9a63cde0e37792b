// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes JSON to a string, piece by piece. The library and the command write all their JSON with it: what is printed
/// in the default style, which a terminal can show, and what goes into files in the others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weighbridge {

/// Writes one JSON text. The same calls give the same bytes. The caller must write each key once and close what it
/// opens. Each invalid UTF-8 byte becomes U+FFFD.
class JsonWriter {
 public:
  /// White space and escapes.
  enum class Style : std::uint8_t {
    compact,   ///< for files: no white space
    indented,  ///< for files: two spaces per level, one member or element per line, no final newline
    shown      ///< compact, with characters that could control a terminal escaped; parses to the same text
  };
  /// Begins an empty text.
  explicit JsonWriter(Style style = Style::shown) : style_(style) {}

  void begin_object() { begin('{'); }  ///< Write the members next, then end_object().
  void end_object() { end('}'); }      ///< Closes what begin_object() opened.
  void begin_array() { begin('['); }   ///< Write the elements next, then end_array().
  void end_array() { end(']'); }       ///< Closes what begin_array() opened.
  /// Inside an object only; the member's value follows: key("size").u64(3).
  JsonWriter& key(std::string_view name);

  void string(std::string_view text);  ///< A string.
  void u64(std::uint64_t value);       ///< All digits of it.
  void i64(std::int64_t value);        ///< All digits of it.
  void number(double value);           ///< The shortest decimal that reads back the same; "nan", "inf", "-inf".
  void number(float value);            ///< Likewise, as a float.
  void boolean(bool value);            ///< true or false.
  void null();                         ///< null.
  void bytes(std::span<const std::byte> data);  ///< Base64 in a string.
  void raw(std::string_view json);              ///< A complete JSON value, not checked.

  void member(std::string_view name, std::string_view text);  ///< key() and string().
  void member(std::string_view name, std::uint64_t value);    ///< key() and u64().
  void flag(std::string_view name, bool value);               ///< key() and boolean().

  /// What was written since the last take(); complete once every begin has its end.
  const std::string& text() const noexcept { return out_; }
  /// Returns the text so far and empties it; later calls continue from there.
  std::string take() { return std::exchange(out_, {}); }

 private:
  void begin(char bracket);
  void end(char bracket);
  void separate();
  void new_line();
  void append(std::string_view text);

  Style style_;
  bool after_key_ = false;
  std::vector<bool> used_{};  // for each open container: whether it has an element
  std::string out_{};
};

}  // namespace weighbridge

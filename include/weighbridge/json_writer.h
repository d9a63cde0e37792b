// SPDX-License-Identifier: Apache-2.0
/// \file
/// JSON into a string, piece by piece: what every JSON text of the library and the command is written with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weighbridge {

/// Writes one JSON text: same calls, same bytes. It owns spelling only; which keys there are, once each, and that every
/// begin has its end, is the caller's. Texts that are not UTF-8 get U+FFFD for each byte that is not.
class JsonWriter {
 public:
  /// White space and escapes.
  enum class Style : std::uint8_t {
    compact,   ///< no white space
    indented,  ///< two spaces a level, one member or element a line, no line end after the root value
    shown      ///< compact, and what could steer a terminal is escaped: the same text to a parser, harmless to people
  };
  /// An empty text.
  explicit JsonWriter(Style style = Style::compact) : style_(style) {}

  void begin_object() { begin('{'); }  ///< The members follow, then end_object().
  void end_object() { end('}'); }      ///< Closes what begin_object() opened.
  void begin_array() { begin('['); }   ///< The elements follow, then end_array().
  void end_array() { end(']'); }       ///< Closes what begin_array() opened.
  /// Inside an object only; the member's value follows.
  void key(std::string_view name);

  void string(std::string_view text);           ///< A string.
  void u64(std::uint64_t value);                ///< All digits of it.
  void i64(std::int64_t value);                 ///< All digits of it.
  void number(double value);                    ///< The shortest that reads back as the same; "nan", "inf", "-inf".
  void number(float value);                     ///< Likewise, as a float.
  void boolean(bool value);                     ///< true or false.
  void null();                                  ///< null.
  void bytes(std::span<const std::byte> data);  ///< Base64 in a string.
  void raw(std::string_view json);              ///< A complete JSON text as it is; the caller vouches for it.

  void member(std::string_view name, std::string_view text);  ///< key() and string().
  void member(std::string_view name, std::uint64_t value);    ///< key() and u64().
  void flag(std::string_view name, bool value);               ///< key() and boolean().

  /// What was written so far, or since the last take(); complete once every begin has its end.
  const std::string& text() const noexcept { return out_; }
  /// Hands it over; what follows goes on where this ends.
  std::string take() { return std::exchange(out_, {}); }

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

}  // namespace weighbridge

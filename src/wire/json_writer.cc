// SPDX-License-Identifier: Apache-2.0
// The JSON writer. Numbers go through fmt, whose output depends on no locale.
#include "wire/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/utf8.h"
#include "wire/base64.h"

namespace weighbridge::wire {
namespace {

void append_escape(std::string& to, unsigned char byte) {
  switch (byte) {
    case '"': to += "\\\""; return;
    case '\\': to += "\\\\"; return;
    case '\b': to += "\\b"; return;
    case '\f': to += "\\f"; return;
    case '\n': to += "\\n"; return;
    case '\r': to += "\\r"; return;
    case '\t': to += "\\t"; return;
    default: fmt::format_to(std::back_inserter(to), "\\u{:04x}", byte);
  }
}

// Escapes characters that could control a terminal in the JSON string at to[from...], as \uXXXX, or a pair above
// U+FFFF.
void escape_steering(std::string& to, std::size_t from) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::all_of(to.begin() + static_cast<std::ptrdiff_t>(from), to.end(), is_plain)) return;
  const std::string text = to.substr(from);
  to.resize(from);
  for (std::size_t at = 0; at < text.size();) {
    const base::Decoded decoded = base::decode_utf8(text, at);
    const auto code = static_cast<std::uint32_t>(decoded.code_point);
    if (!base::steers_terminal(decoded.code_point))
      to.append(text, at, decoded.length);
    else if (code <= 0xFFFF)
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", code);
    else
      fmt::format_to(std::back_inserter(to), "\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
    at += decoded.length;
  }
}

template <class T> void append_number(std::string& to, T value) {
  if (!std::isfinite(value)) {
    to += std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  const std::size_t from = to.size();
  fmt::format_to(std::back_inserter(to), "{}", value);
  if (to.find_first_of(".e", from) == std::string::npos) to += ".0";
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  const bool valid = base::is_utf8(text);
  to.push_back('"');
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      append_escape(to, byte);
      ++at;
    } else if (valid || byte < 0x80) {
      to.push_back(text[at++]);
    } else {
      const base::Decoded decoded = base::decode_utf8(text, at);
      if (decoded.valid)
        to.append(text.substr(at, decoded.length));
      else
        base::append_utf8(to, 0xFFFD);
      at += decoded.length;
    }
  }
  to.push_back('"');
}

void append_json_number(std::string& to, double value) { append_number(to, value); }
void append_json_number(std::string& to, float value) { append_number(to, value); }

}  // namespace weighbridge::wire

namespace weighbridge {

using wire::append_json_number, wire::append_json_string, wire::append_base64;

void JsonWriter::new_line() {
  if (style_ != Style::indented) return;
  out_.push_back('\n');
  out_.append(used_.size() * 2, ' ');
}

// Writes the separator between the previous value and the next.
void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (used_.empty()) return;
  if (used_.back()) out_.push_back(',');
  used_.back() = true;
  new_line();
}

void JsonWriter::begin(char bracket) {
  separate();
  out_.push_back(bracket);
  used_.push_back(false);
}

void JsonWriter::end(char bracket) {
  const bool used = used_.back();
  used_.pop_back();
  if (used) new_line();
  out_.push_back(bracket);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append(name);
  out_ += style_ == Style::indented ? ": " : ":";
  after_key_ = true;
  return *this;
}

void JsonWriter::string(std::string_view text) {
  separate();
  append(text);
}

void JsonWriter::append(std::string_view text) {
  const std::size_t from = out_.size();
  append_json_string(out_, text);
  if (style_ == Style::shown) wire::escape_steering(out_, from);
}

void JsonWriter::u64(std::uint64_t value) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void JsonWriter::i64(std::int64_t value) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void JsonWriter::number(double value) {
  separate();
  append_json_number(out_, value);
}

void JsonWriter::number(float value) {
  separate();
  append_json_number(out_, value);
}

void JsonWriter::boolean(bool value) {
  separate();
  out_ += value ? "true" : "false";
}

void JsonWriter::null() {
  separate();
  out_ += "null";
}

void JsonWriter::bytes(std::span<const std::byte> data) {
  separate();
  out_.push_back('"');
  append_base64(out_, data);
  out_.push_back('"');
}

void JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
}

void JsonWriter::member(std::string_view name, std::string_view text) {
  key(name);
  string(text);
}

void JsonWriter::member(std::string_view name, std::uint64_t value) {
  key(name);
  u64(value);
}

void JsonWriter::flag(std::string_view name, bool value) {
  key(name);
  boolean(value);
}

}  // namespace weighbridge

// SPDX-License-Identifier: Apache-2.0
// Prints the results of the two parsers of src/wire, for comparisons in Python (tests/interop/test_parsers.py). Reads
// records from stdin, each 'J' or 'C', a little-endian u32 length and that many bytes. Prints one line for each: JSON
// of the value, or {"error": code, "offset": n}. A value is [type, content], so that the spelling of numbers, bytes and
// odd keys does not matter; text and bytes are in hexadecimal.
#include <array>
#include <bit>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/endian.h"
#include "wire/cbor_reader.h"
#include "wire/json_reader.h"

namespace {

using namespace weighbridge::wire;

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::string bits_of(double value) { return std::to_string(std::bit_cast<std::uint64_t>(value)); }

// A scalar: its type and its content, which needs no escapes.
std::string scalar(char type, std::string_view content) {
  return std::string("[\"") + type + "\",\"" + std::string(content) + "\"]";
}

std::string dump(JsonReader& in);
std::string dump(CborReader& in);

template <class Reader> std::string array(Reader& in) {
  std::string out = "[\"a\",[";
  if (in.enter_array())
    while (in.next_element()) {
      if (out.back() != '[') out += ',';
      out += dump(in);
    }
  return out + "]]";
}

// Containers are written in the order of their items, duplicate keys included.
std::string dump(JsonReader& in) {
  std::string out, scratch;
  JsonString text;
  JsonNumber number;
  bool flag = false;
  switch (in.peek()) {
    case JsonKind::object:
      out = "[\"m\",[";
      if (in.enter_object())
        while (in.next_key(text)) {
          if (out.back() != '[') out += ',';
          out += "[" + scalar('t', hex(json_text(text, scratch))) + ",";
          out += dump(in) + "]";
        }
      return out + "]]";
    case JsonKind::array: return array(in);
    case JsonKind::string: return in.read_string(text) ? scalar('t', hex(json_text(text, scratch))) : out;
    case JsonKind::number: {
      if (!in.read_number(number)) return out;
      const auto value = as_double(number.raw);
      return "[\"d\",\"" + std::string(number.raw) + "\"," + (value ? bits_of(*value) : "null") + "]";
    }
    case JsonKind::boolean: return in.read_bool(flag) ? scalar('o', flag ? "1" : "0") : out;
    case JsonKind::null: return in.read_null() ? scalar('n', "") : out;
    case JsonKind::none: in.skip_value(); return out;
  }
  return out;
}

std::string dump(CborReader& in) {
  std::string out, scratch;
  CborString string;
  CborInteger integer;
  CborFloat floating;
  std::uint64_t tag = 0;
  std::uint8_t simple = 0;
  bool flag = false;
  switch (in.peek()) {
    case CborKind::unsigned_integer:
    case CborKind::negative_integer:
      return in.read_integer(integer) ? scalar(integer.negative ? '-' : '+', std::to_string(integer.argument)) : out;
    case CborKind::bytes: return in.read_bytes(string) ? scalar('b', hex(cbor_text(string, scratch))) : out;
    case CborKind::text: return in.read_text(string) ? scalar('t', hex(cbor_text(string, scratch))) : out;
    case CborKind::array: return array(in);
    case CborKind::map:
      out = "[\"m\",[";
      if (in.enter_map())
        while (in.next_entry()) {
          if (out.back() != '[') out += ',';
          out += "[" + dump(in);
          if (in.ok()) out += "," + dump(in) + "]";
        }
      return out + "]]";
    case CborKind::tag: return in.read_tag(tag) ? "[\"g\"," + std::to_string(tag) + "," + dump(in) + "]" : out;
    case CborKind::boolean: return in.read_bool(flag) ? scalar('o', flag ? "1" : "0") : out;
    case CborKind::null: return in.read_null() ? scalar('n', "") : out;
    case CborKind::undefined:
    case CborKind::simple: return in.read_simple(simple) ? scalar('s', std::to_string(simple)) : out;
    case CborKind::floating: return in.read_float(floating) ? scalar('f', bits_of(floating.value)) : out;
    case CborKind::none: in.skip_item(); return out;
  }
  return out;
}

template <class Reader> std::string answer(std::string_view bytes) {
  Reader in(bytes);
  const std::string value = dump(in);
  if (in.ok() && in.finish()) return value;
  return "{\"error\":\"" + std::string(name(in.error().code)) + "\",\"offset\":" + std::to_string(in.error().offset) +
         "}";
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::array<char, 5> head{};
  std::string bytes;
  while (std::cin.read(head.data(), head.size())) {
    bytes.resize(weighbridge::base::load_le<std::uint32_t>(head.data() + 1));
    if (!std::cin.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      throw std::runtime_error("a record ends too soon");
    std::cout << (head[0] == 'J' ? answer<JsonReader>(bytes) : answer<CborReader>(bytes)) << '\n';
  }
  return 0;
}

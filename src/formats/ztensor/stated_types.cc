// SPDX-License-Identifier: Apache-2.0
// The types that a value's form in the file does not show.
#include "formats/ztensor/cbor_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "base/checked.h"
#include "wire/base64.h"
#include "wire/half.h"
#include "wire/json_reader.h"
#include "wire/keys.h"

namespace weighbridge::ztensor {
namespace {

// A value with the types that JSON implies: numbers without a point are integers, all others are f64. The reader limits
// the depth.
std::optional<Value> from_json(wire::JsonReader& in, std::string& scratch) {
  switch (in.peek()) {
    case wire::JsonKind::null: in.read_null(); return Value{};
    case wire::JsonKind::boolean: {
      bool value = false;
      in.read_bool(value);
      return Value::boolean(value);
    }
    case wire::JsonKind::string: {
      wire::JsonString text;
      if (!in.read_string(text)) return std::nullopt;
      return Value::text(std::string(wire::json_text(text, scratch)));
    }
    case wire::JsonKind::number: {
      wire::JsonNumber number;
      if (!in.read_number(number)) return std::nullopt;
      if (number.integer)
        if (const auto natural = wire::as_u64(number.raw)) return Value::integer(*natural);
      if (number.integer)
        if (const auto integer = wire::as_i64(number.raw)) return Value::integer(*integer);
      const auto real = wire::as_double(number.raw);
      return real ? std::optional(Value::real(*real)) : std::nullopt;
    }
    case wire::JsonKind::array: {
      std::vector<Value> elements;
      in.enter_array();
      while (in.next_element()) {
        auto element = from_json(in, scratch);
        if (!element) return std::nullopt;
        elements.push_back(std::move(*element));
      }
      return in.ok() ? std::optional(Value::list(std::move(elements))) : std::nullopt;
    }
    case wire::JsonKind::object: {
      std::vector<Value::Entry> entries;
      in.enter_object();
      for (wire::JsonString key; in.next_key(key);) {
        std::string name(wire::json_text(key, scratch));
        auto value = from_json(in, scratch);
        if (!value) return std::nullopt;
        entries.emplace_back(std::move(name), std::move(*value));
      }
      std::vector<wire::Key> keys;
      for (std::size_t i = 0; i < entries.size(); ++i) keys.push_back({entries[i].first, i});
      if (!in.ok() || wire::first_duplicate(keys)) return std::nullopt;
      return Value::map(std::move(entries));
    }
    case wire::JsonKind::none: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Value> parse_json(std::string_view text) {
  // The text comes from a file, so the size of the parsed value is bounded.
  constexpr std::size_t kLongestJson = std::size_t{1} << 20;
  if (text.size() > kLongestJson) return std::nullopt;
  wire::JsonReader in(text, 64);
  std::string scratch;
  auto value = from_json(in, scratch);
  if (!value || !in.ok() || !in.finish()) return std::nullopt;
  return value;
}

std::string type_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return "bool";
    case Value::Kind::integer:
    case Value::Kind::real: return std::string(name(value.type()));
    case Value::Kind::text: return "";
    case Value::Kind::bytes: return "bytes";
    case Value::Kind::list: return "list";
    case Value::Kind::map: return "map";
    case Value::Kind::numbers: return std::string(name(value.type())) + "[]";
    case Value::Kind::texts: return "text[]";
    case Value::Kind::foreign: return std::string(value.grammar());
  }
  return "";
}

// A number as f32. Text is rounded, because its short decimal denotes the f32. nullopt for a number that f32 cannot
// represent exactly, and for anything that would become infinite or 0.
std::optional<double> narrowed(double value, bool text) {
  if (!std::isfinite(value)) return value;
  const double single = static_cast<double>(base::to_float(value));
  if (!std::isfinite(single) || (single == 0) != (value == 0) || (!text && single != value)) return std::nullopt;
  return single;
}

// `text`: the number comes from text, by itself or in a list.
std::optional<Value> restore_number(const Value& stored, DType type, bool text) {
  const DTypeInfo& facts = info(type);
  if (facts.kind == DTypeKind::unsigned_integer) {
    const auto value = stored.as_u64();
    if (!value || (facts.bits < 64 && *value >> facts.bits != 0)) return std::nullopt;
    return Value::integer(*value, type);
  }
  if (facts.kind == DTypeKind::signed_integer) {
    const auto value = stored.as_i64();
    if (!value) return std::nullopt;
    const std::int64_t maximum = facts.bits == 64 ? INT64_MAX : (std::int64_t{1} << (facts.bits - 1)) - 1;
    if (*value > maximum || *value < -maximum - 1) return std::nullopt;
    return Value::integer(*value, type);
  }
  if (type != DType::f16 && type != DType::f32 && type != DType::f64) return std::nullopt;
  std::optional<double> value = stored.as_f64();
  if (const auto word = stored.as_text(); word && !value) {
    if (*word == "nan") value = std::nan("");
    if (*word == "-nan") value = -std::nan("");
    if (*word == "inf") value = HUGE_VAL;
    if (*word == "-inf") value = -HUGE_VAL;
  }
  if (!value) return std::nullopt;
  if (type != DType::f64) value = narrowed(*value, text || stored.kind() == Value::Kind::text);
  if (!value) return std::nullopt;
  if (type == DType::f16 && std::isfinite(*value) && wire::half_to_double(wire::half_bits(*value)) != *value)
    return std::nullopt;
  return Value::real(*value, type);
}

// Appends one number in the little-endian form of `type`; false if it does not fit.
bool append_number(std::vector<std::byte>& to, DType type, const Value& value, bool text) {
  std::uint64_t bits = 0;
  const DTypeInfo& facts = info(type);
  if (facts.kind == DTypeKind::boolean) {
    const auto flag = value.as_bool();
    if (!flag) return false;
    bits = *flag ? 1 : 0;
  } else {
    const auto number = restore_number(value, type, text);
    if (!number) return false;
    if (facts.kind == DTypeKind::real) {
      const double real = *number->as_f64();
      bits = type == DType::f16   ? wire::half_bits(real)
             : type == DType::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(real))
                                  : std::bit_cast<std::uint64_t>(real);
    } else if (const auto natural = number->as_u64()) {
      bits = *natural;
    } else {
      bits = static_cast<std::uint64_t>(*number->as_i64());
    }
  }
  for (std::uint32_t i = 0; i < facts.bits / 8; ++i) to.push_back(static_cast<std::byte>(bits >> (8 * i)));
  return true;
}

std::optional<Value> restore_list(const Value& list, std::string_view element, bool text) {
  if (list.kind() != Value::Kind::list) return std::nullopt;
  if (element == "text") {
    Texts texts;
    for (const Value& v : list.list()) {
      const auto one = v.as_text();
      if (!one) return std::nullopt;
      texts.push_back(*one);
    }
    return Value::texts(std::move(texts));
  }
  const auto type = dtype_from_name(element);
  if (!type || info(*type).bits % 8 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (const Value& v : list.list())
    if (!append_number(bytes, *type, v, text)) return std::nullopt;
  return Value::numbers(*type, std::move(bytes));
}

const std::string kItemType = "cbor ";

// The item in the type's base64, if the stored value is the item's text.
std::optional<Value> restore_item(const Value& stored, std::string_view base64) {
  const auto item = wire::decode_base64(base64);
  if (!item) return std::nullopt;
  wire::CborReader sound(std::span<const std::byte>(*item), 64);
  if (!sound.skip_item() || !sound.finish()) return std::nullopt;
  wire::CborReader in{std::span<const std::byte>(*item), 64};
  core::Budget budget{std::uint64_t{1} << 20};
  std::optional<std::size_t> duplicate;
  Value value = read_value(in, budget, duplicate);
  if (duplicate || stored.as_text() != value.to_text()) return std::nullopt;
  return value;
}

}  // namespace

Stated state(const Value& value, bool as_text, Floats floats) {
  if (as_text) {
    Stated out{Value::text(value.to_text()), type_of(value), true};
    if (value.kind() == Value::Kind::text) return out;
    const auto gives_back = [&] {
      const auto back = restore(out.value, out.type);
      return back && *back == value;
    };
    if (gives_back()) return out;
    // Lists and maps whose elements have types that the text would lose.
    wire::CborWriter item;
    write_value(item, value);
    out.type = kItemType + wire::encode_base64(std::as_bytes(std::span(item.data())));
    if (gives_back()) return out;
    out.type.clear();
    out.exact = false;
    return out;
  }
  // A value that its form in the file gives back needs no type.
  wire::CborWriter writer;
  write_value(writer, value, floats);
  wire::CborReader in(writer.data(), UINT32_MAX);
  core::Budget budget{UINT64_MAX};
  std::optional<std::size_t> duplicate;
  const Value plain = read_value(in, budget, duplicate, floats);
  if (plain == value) return {value, "", true};
  Stated out{value, type_of(value), true};
  const auto back = restore(plain, out.type);
  out.exact = back && *back == value;
  if (!out.exact) out.type.clear();
  return out;
}

std::optional<Value> restore(const Value& stored, std::string_view type) {
  if (type.ends_with("[]")) {
    const auto text = stored.as_text();
    const auto list = text ? parse_json(*text) : std::optional(stored);
    return list ? restore_list(*list, type.substr(0, type.size() - 2), text.has_value()) : std::nullopt;
  }
  if (type.starts_with(kItemType)) return restore_item(stored, type.substr(kItemType.size()));
  if (type == "null") return stored.as_text() == "null" ? std::optional(Value{}) : std::nullopt;
  if (type == "bool") {
    const auto flag = stored.as_bool();
    return flag ? std::optional(Value::boolean(*flag)) : std::nullopt;
  }
  if (type == "list" || type == "map") {
    const auto text = stored.as_text();
    auto value = text ? parse_json(*text) : std::nullopt;
    if (!value || value->kind() != (type == "list" ? Value::Kind::list : Value::Kind::map)) return std::nullopt;
    return value;
  }
  if (const auto dtype = dtype_from_name(type)) return restore_number(stored, *dtype, false);
  // Bytes, and foreign items by their grammar, are base64 text or bytes.
  std::optional<std::vector<std::byte>> bytes;
  if (const auto text = stored.as_text())
    bytes = wire::decode_base64(*text);
  else if (stored.kind() == Value::Kind::bytes)
    bytes.emplace(stored.bytes().begin(), stored.bytes().end());
  if (!bytes) return std::nullopt;
  if (type == "bytes") return Value::bytes(std::move(*bytes));
  if (type != "cbor" && type != "json") return std::nullopt;
  if (type == "cbor") {
    wire::CborReader in(std::span<const std::byte>(*bytes), 64);
    if (!in.skip_item() || !in.finish()) return std::nullopt;
  }
  return Value::foreign(std::string(type), std::move(*bytes));
}

void restore_types(std::vector<Value::Entry>& entries) {
  const auto at =
      std::find_if(entries.begin(), entries.end(), [](const Value::Entry& e) { return e.first == kTypesKey; });
  if (at == entries.end()) return;
  Value types = at->second;
  if (const auto text = types.as_text()) types = parse_json(*text).value_or(Value{});
  if (types.kind() != Value::Kind::map || types.map().empty()) return;
  std::vector<Value::Entry> named(types.map().begin(), types.map().end());
  std::sort(named.begin(), named.end(), [](const Value::Entry& a, const Value::Entry& b) { return a.first < b.first; });
  std::vector<std::pair<std::size_t, Value>> restored;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto type = std::lower_bound(named.begin(), named.end(), entries[i].first,
                                       [](const Value::Entry& e, const std::string& key) { return e.first < key; });
    if (type == named.end() || type->first != entries[i].first) continue;
    const auto name = type->second.as_text();
    auto value = name ? restore(entries[i].second, *name) : std::nullopt;
    if (!value) return;
    restored.emplace_back(i, std::move(*value));
  }
  if (restored.size() != named.size()) return;
  for (auto& [i, value] : restored) entries[i].second = std::move(value);
  entries.erase(
      std::find_if(entries.begin(), entries.end(), [](const Value::Entry& e) { return e.first == kTypesKey; }));
}

}  // namespace weighbridge::ztensor

// SPDX-License-Identifier: Apache-2.0
// Parses typed values. A number that its type cannot hold exactly is refused, never rounded silently, except decimal
// fractions, which become the nearest value of their type.
#include "edit/values.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "core/model/pattern.h"
#include "core/model/words.h"
#include "core/reading/json_file.h"
#include "core/writing/options.h"
#include "wire/json_reader.h"

namespace weighbridge {
namespace edit_files {
namespace {

constexpr DType kNumbers[] = {DType::u8,  DType::i8,  DType::u16, DType::i16, DType::u32,
                              DType::i32, DType::u64, DType::i64, DType::f32, DType::f64};
constexpr std::uint32_t kDepth = 64;

bool is_real(DType dtype) { return dtype == DType::f16 || dtype == DType::f32 || dtype == DType::f64; }

// nullopt if the text is not a number, or the type cannot hold it.
std::optional<Value> number(std::string_view text, DType dtype) try {
  if (is_real(dtype)) {
    double value = 0;
    if (text == "nan" || text == "inf" || text == "-inf") {
      value = text == "nan" ? std::nan("") : text == "inf" ? INFINITY : -INFINITY;
    } else {
      const auto parsed = wire::as_double(text);
      const bool digits = !text.empty() && text.find_first_not_of("0123456789.eE+-") == text.npos;
      if (!parsed || !digits) return std::nullopt;
      value = *parsed;
    }
    if (dtype == DType::f32) {
      const float nearest = base::to_float(value);
      if (std::isinf(nearest) && !std::isinf(value)) return std::nullopt;
      value = static_cast<double>(nearest);
    }
    return Value::real(value, dtype);
  }
  if (const auto whole = wire::as_u64(text)) return Value::integer(*whole, dtype);
  if (const auto whole = wire::as_i64(text)) return Value::integer(*whole, dtype);
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // beyond the type
}

std::optional<Value> boolean(std::string_view text) {
  if (text == "true" || text == "1") return Value::boolean(true);
  if (text == "false" || text == "0") return Value::boolean(false);
  return std::nullopt;
}

// A JSON number in the smallest of the general types.
std::optional<Value> plain_number(std::string_view raw) {
  if (const auto value = wire::as_i64(raw)) return Value::integer(*value, DType::i64);
  if (const auto value = wire::as_u64(raw)) return Value::integer(*value, DType::u64);
  if (const auto value = wire::as_double(raw)) return Value::real(*value, DType::f64);
  return std::nullopt;
}

// A list whose elements are all texts, or numbers of one type, is an array.
Value packed(std::vector<Value> list) {
  const auto all = [&](auto is) { return !list.empty() && std::all_of(list.begin(), list.end(), is); };
  if (all([](const Value& v) { return v.kind() == Value::Kind::text; })) {
    Texts texts;
    for (const Value& each : list) texts.push_back(*each.as_text());
    return Value::texts(std::move(texts));
  }
  const bool whole = all([](const Value& v) { return v.kind() == Value::Kind::integer && v.type() == DType::i64; });
  const bool reals = !whole && all([](const Value& v) {
    return v.kind() == Value::Kind::real || (v.kind() == Value::Kind::integer && v.as_f64().has_value());
  });
  if (!whole && !reals) return Value::list(std::move(list));
  // The types that programs expect: i32 if all fit, as in the lists of GGUF.
  const bool narrow = whole && all([](const Value& v) { return std::in_range<std::int32_t>(*v.as_i64()); });
  std::vector<std::byte> bytes;
  const auto append = [&]<class T>(T value) {
    std::byte raw[sizeof(T)];
    base::store_le<T>(raw, value);
    bytes.insert(bytes.end(), raw, raw + sizeof raw);
  };
  for (const Value& each : list) {
    if (narrow)
      append(static_cast<std::uint32_t>(*each.as_i64()));
    else if (whole)
      append(static_cast<std::uint64_t>(*each.as_i64()));
    else
      append(std::bit_cast<std::uint64_t>(*each.as_f64()));
  }
  return Value::numbers(narrow ? DType::i32 : whole ? DType::i64 : DType::f64, std::move(bytes));
}

// The next value; the reader is not ok() if the text is broken.
Value json_value(wire::JsonReader& in) {
  std::string scratch;
  switch (in.peek()) {
    case wire::JsonKind::string: {
      wire::JsonString text;
      if (!in.read_string(text)) return {};
      return Value::text(std::string(wire::json_text(text, scratch)));
    }
    case wire::JsonKind::boolean: {
      bool value = false;
      in.read_bool(value);
      return Value::boolean(value);
    }
    case wire::JsonKind::number: {
      wire::JsonNumber raw;
      if (!in.read_number(raw)) return {};
      const auto value = plain_number(raw.raw);
      if (!value) base::misuse("value", "the number " + std::string(raw.raw.substr(0, 40)) + " is too large");
      return *value;
    }
    case wire::JsonKind::array: {
      std::vector<Value> list;
      in.enter_array();
      while (in.next_element()) list.push_back(json_value(in));
      return packed(std::move(list));
    }
    case wire::JsonKind::object: {
      std::vector<Value::Entry> entries;
      std::set<std::string> names;  // an object may have millions
      in.enter_object();
      for (wire::JsonString key; in.next_key(key);) {
        std::string name(wire::json_text(key, scratch));
        if (!names.insert(name).second) base::misuse("value", "the key " + core::quoted(name) + " occurs twice");
        entries.emplace_back(std::move(name), json_value(in));
      }
      return Value::map(std::move(entries));
    }
    default: in.read_null(); return {};
  }
}

[[noreturn]] void refuse_json(const wire::JsonError& error) {
  base::misuse("json", "this is not JSON: " + std::string(error.sentence) + " at byte " + std::to_string(error.offset));
}

[[noreturn]] void refuse(const EditOptions::Setting& setting, std::string_view type, bool of_present) {
  base::misuse("value", core::quoted(core::excerpt(setting.text)) + " is not a value of the type " + std::string(type) +
                            (of_present ? ", which the attribute " + core::quoted(setting.key) +
                                              " has: name another type to change it"
                                        : ", which was given for " + core::quoted(setting.key)));
}

}  // namespace

std::string_view type_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::text: return "text";
    case Value::Kind::boolean: return "bool";
    case Value::Kind::integer:
    case Value::Kind::real: return name(value.type());
    default: return "json";
  }
}

Value typed(const EditOptions::Setting& setting, const Value* present) {
  if (!base::is_utf8(setting.key) || !base::is_utf8(setting.text))
    base::misuse("name", "the value of " + core::quoted(setting.key) + " is not UTF-8");
  const bool of_present = setting.type.empty() && present != nullptr;
  std::string_view type = short_dtype_name(setting.type);
  if (type.empty()) type = of_present ? type_of(*present) : "text";
  if (type == "text") return Value::text(setting.text);
  if (type == "bool") {
    if (const auto value = boolean(setting.text)) return *value;
    refuse(setting, type, of_present);
  }
  if (type == "json") {
    wire::JsonReader in(setting.text, kDepth);
    Value value = json_value(in);
    if (!in.ok() || !in.finish()) {
      if (of_present) refuse(setting, "list", true);
      refuse_json(in.error());
    }
    return value;
  }
  const auto dtype = dtype_from_name(type);
  if (!dtype || std::find(std::begin(kNumbers), std::end(kNumbers), *dtype) == std::end(kNumbers))
    core::refuse_word("a type", type, EditOptions::types());
  if (auto value = number(setting.text, *dtype)) return *std::move(value);
  refuse(setting, type, of_present);
}

Value like(const Value& value, const Value* present) {
  const bool numbers = value.kind() == Value::Kind::integer || value.kind() == Value::Kind::real;
  const bool was = present && (present->kind() == Value::Kind::integer || present->kind() == Value::Kind::real);
  if (!numbers || !was) return value;
  if (auto same = number(value.to_text(), present->type())) return *std::move(same);
  return value;
}

}  // namespace edit_files

std::vector<std::string_view> EditOptions::types() {
  return {"text", "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64", "json"};
}

bool EditOptions::empty() const noexcept {
  return set.empty() && values.empty() && unset.empty() && !changes_tensors();
}
bool EditOptions::changes_tensors() const noexcept {
  return !rename.empty() || !patterns.empty() || !without.empty() || !read_as.empty();
}

// KEY=VALUE or KEY:TYPE=VALUE.
void assign(const OptionInfo& row, std::string_view text, std::vector<EditOptions::Setting>& to) {
  auto made = core::divided(text);
  if (!made)
    base::misuse("option", std::string(row.name) + " takes KEY=VALUE or KEY:TYPE=VALUE, not " + core::quoted(text));
  EditOptions::Setting setting{.key = std::move(made->first), .text = std::move(made->second)};
  const std::size_t colon = setting.key.rfind(':');
  if (colon != setting.key.npos && colon > 0) {
    const auto known = EditOptions::types();
    const std::string_view type = short_dtype_name(std::string_view(setting.key).substr(colon + 1));
    if (std::find(known.begin(), known.end(), type) != known.end()) {
      setting.type = type;
      setting.key.resize(colon);
    }
  }
  to.push_back(std::move(setting));
}

namespace {

constexpr core::Bound<EditOptions> kBound[] = {
#define WB_EDIT_OPTION(MEMBER, ...) WB_BOUND(EditOptions, MEMBER)
#include "core/writing/option_rows.def"
};

}  // namespace

void EditOptions::add(std::string_view option, std::string_view text) {
  core::set<EditOptions>(*this, OptionOf::edit, kBound, option, text);
}
void EditOptions::add(std::string_view option, std::string_view key, std::string_view value) {
  if (option == "rename")
    rename.push_back({.from = std::string(key), .to = std::string(value)});
  else if (option == "set")
    set.push_back({.key = std::string(key), .text = std::string(value)});
  else
    add(option, std::string(key) + "=" + std::string(value));
}

void EditOptions::add_json(const Source& source, const Limits& limits) {
  const std::string text = core::whole_text(source, limits, "the JSON of the edit");
  const auto refuse = [&](std::string why) { base::misuse_of(source.name(), "json", std::move(why)); };
  wire::JsonReader in(text, limits.depth);
  if (!in.enter_object()) {
    if (in.ok()) refuse("the metadata to set must be a JSON object of keys and values");
    edit_files::refuse_json(in.error());
  }
  std::string scratch;
  for (wire::JsonString raw; in.next_key(raw);) {
    std::string key(wire::json_text(raw, scratch));
    Value value = edit_files::json_value(in);
    if (!in.ok()) break;
    const Value* const type = value.kind() == Value::Kind::map ? find(value.map(), "type") : nullptr;
    const Value* const own = value.kind() == Value::Kind::map ? find(value.map(), "value") : nullptr;
    if (value.kind() == Value::Kind::null)
      unset.push_back(std::move(key));
    else if (type && own && value.map().size() == 2 && type->as_text())
      set.push_back({std::move(key), std::string(*type->as_text()), own->to_text()});
    else
      values.emplace_back(std::move(key), std::move(value));
  }
  if (!in.ok() || !in.finish()) edit_files::refuse_json(in.error());
}

}  // namespace weighbridge

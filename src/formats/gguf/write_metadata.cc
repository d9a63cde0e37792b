// SPDX-License-Identifier: Apache-2.0
// Encodes metadata values. A value whose type GGUF lacks becomes the nearest array, or its canonical text.
#include "formats/gguf/write_metadata.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/endian.h"
#include "core/model/plan_text.h"
#include "formats/gguf/layout.h"

namespace weighbridge::gguf {
namespace {

void append_type(std::string& to, ValueType type) { base::append_le(to, static_cast<std::uint32_t>(type)); }

std::optional<ValueType> type_of(DType dtype) noexcept {
  for (std::uint32_t i = 0; i < kValueTypes; ++i)
    if (kValueDTypes[i] == dtype && dtype != DType::unknown) return static_cast<ValueType>(i);
  return std::nullopt;
}

// The bytes of one number or boolean, which has a type of GGUF.
void append_number(std::string& to, const Value& value) {
  const DType dtype = value.kind() == Value::Kind::boolean ? DType::boolean : value.type();
  std::uint64_t bits = 0;
  if (dtype == DType::f32)
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(*value.as_f64()));
  else if (dtype == DType::f64)
    bits = std::bit_cast<std::uint64_t>(*value.as_f64());
  else if (dtype == DType::boolean)
    bits = *value.as_bool() ? 1 : 0;
  else if (const auto whole = value.as_u64())
    bits = *whole;
  else
    bits = static_cast<std::uint64_t>(*value.as_i64());
  char bytes[8];
  base::store_le<std::uint64_t>(bytes, bits);
  to.append(bytes, info(dtype).bits / 8);
}

// The array for a list whose elements all have the same GGUF type; nullopt for other lists and for an empty one.
std::optional<std::string> array_of(std::span<const Value> list) {
  if (list.empty()) return std::nullopt;
  const auto kind = [](const Value& value) -> std::optional<ValueType> {
    if (value.kind() == Value::Kind::text) return ValueType::text;
    if (value.kind() == Value::Kind::boolean) return ValueType::boolean;
    if (value.kind() == Value::Kind::integer || value.kind() == Value::Kind::real) return type_of(value.type());
    return std::nullopt;
  };
  const auto first = kind(list[0]);
  if (!first || !std::ranges::all_of(list, [&](const Value& value) { return kind(value) == first; }))
    return std::nullopt;
  std::string out;
  append_type(out, ValueType::array);
  append_type(out, *first);
  base::append_le(out, std::uint64_t{list.size()});
  for (const Value& value : list) {
    if (*first == ValueType::text)
      append_text(out, *value.as_text());
    else
      append_number(out, value);
  }
  return out;
}

// The type and the bytes of a value; nullopt if GGUF has no such type.
std::optional<std::string> encode(const Value& value) {
  std::string out;
  switch (value.kind()) {
    case Value::Kind::boolean:
      append_type(out, ValueType::boolean);
      append_number(out, value);
      return out;
    case Value::Kind::integer:
    case Value::Kind::real: {
      const auto type = type_of(value.type());
      if (!type) return std::nullopt;
      append_type(out, *type);
      append_number(out, value);
      return out;
    }
    case Value::Kind::text:
      append_type(out, ValueType::text);
      append_text(out, *value.as_text());
      return out;
    case Value::Kind::texts: {
      const Texts& texts = *value.texts();
      out.reserve(texts.blob.size() + 8 * texts.size() + 16);
      append_type(out, ValueType::array);
      append_type(out, ValueType::text);
      base::append_le(out, std::uint64_t{texts.size()});
      for (std::size_t i = 0; i < texts.size(); ++i) append_text(out, texts[i]);
      return out;
    }
    case Value::Kind::numbers: {
      const auto type = type_of(value.type());
      if (!type) return std::nullopt;
      append_type(out, ValueType::array);
      append_type(out, *type);
      const auto bytes = value.bytes();
      base::append_le(out, std::uint64_t{bytes.size() / (info(value.type()).bits / 8)});
      out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return out;
    }
    case Value::Kind::list: return array_of(value.list());
    default: return std::nullopt;
  }
}

}  // namespace

void append_text(std::string& to, std::string_view text) {
  base::append_le(to, std::uint64_t{text.size()});
  to += text;
}

void MetadataOut::add(std::string_view key, const Value& value, core::PlanItems& plan_items) {
  const std::string where = core::indexed("attributes", key);
  if (const auto encoded = encode(value)) {
    append_text(bytes_, key);
    bytes_ += *encoded;
    ++count_;
    return;
  }
  std::string text = value.to_text();
  if (!core::can_be_text(key, value, text))
    return plan_items.lose(LossKind::attribute, where, std::move(text),
                           "dropped: GGUF has no type for it, and it cannot be text");
  plan_items.lose(LossKind::attribute_type, where, core::type_text(value), "text");
  add(key, Value::text(std::move(text)));
}

void MetadataOut::add(std::string_view key, const Value& value) {
  append_text(bytes_, key);
  bytes_ += *encode(value);
  ++count_;
}

}  // namespace weighbridge::gguf

// SPDX-License-Identifier: Apache-2.0
// Value: one metadata value in its container's own type, and its canonical text.
#include "weighbridge/value.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <variant>
#include <vector>

#include "base/endian.h"
#include "base/fail.h"
#include "core/model/values.h"
#include "wire/base64.h"
#include "wire/half.h"

namespace weighbridge {

namespace {

struct Integer {
  std::uint64_t bits;  // two's complement
  bool negative;
  bool operator==(const Integer&) const = default;
};
struct Real {
  double value;
  bool operator==(const Real& other) const noexcept {
    return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value);
  }
};
struct Verbatim {
  std::vector<std::byte> bytes;
  std::string grammar;
  bool operator==(const Verbatim&) const = default;
};

bool width_holds(DType width, Integer value) noexcept {
  const DTypeInfo& facts = info(width);
  if (facts.kind == DTypeKind::unsigned_integer) {
    return !value.negative && (facts.bits == 64 || value.bits >> facts.bits == 0);
  }
  if (facts.kind != DTypeKind::signed_integer) return false;
  if (!value.negative) return value.bits >> (facts.bits - 1) == 0;
  return static_cast<std::int64_t>(value.bits) >= -(std::int64_t{1} << (facts.bits - 2)) * 2;
}

// f16 holds a double if it has at most 11 significant bits within f16's range.
bool f16_holds(double value) noexcept {
  if (std::isnan(value) || std::isinf(value) || value == 0) return true;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // value = mantissa x 2^exponent, 0.5 <= |mantissa| < 1
  if (exponent > 16) return false;
  const int digits = exponent < -13 ? 11 - (-13 - exponent) : 11;  // subnormal below 2^-14
  if (digits < 1) return false;
  const double scaled = std::ldexp(mantissa, digits);
  return scaled == std::trunc(scaled);
}

bool width_keeps(DType width, double value) noexcept {
  switch (width) {
    case DType::f64: return true;
    case DType::f32: return std::isnan(value) || static_cast<double>(static_cast<float>(value)) == value;
    case DType::f16: return f16_holds(value);
    default: return false;
  }
}

template <class T> std::optional<T> parse_canonical_integer(std::string_view text) noexcept {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  const bool minus = text[0] == '-';
  const std::string_view digits = text.substr(minus ? 1 : 0);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  if (minus && digits == "0") return std::nullopt;
  return value;
}

}  // namespace

struct Value::Rep {
  Kind kind;
  DType type = DType::unknown;
  std::variant<std::monostate, bool, Integer, Real, std::string, std::vector<std::byte>, std::vector<Value>,
               std::vector<Entry>, Texts, Verbatim>
      content{};
};

Value Value::boolean(bool value) { return Value(std::make_shared<Rep>(Rep{Kind::boolean, DType::unknown, value})); }

Value Value::integer(std::int64_t value, DType width) {
  const Integer content{static_cast<std::uint64_t>(value), value < 0};
  if (!width_holds(width, content))
    base::misuse("value-width", fmt::format("{} does not hold {}", weighbridge::name(width), value));
  return Value(std::make_shared<Rep>(Rep{Kind::integer, width, content}));
}

Value Value::integer(std::uint64_t value, DType width) {
  const Integer content{value, false};
  if (!width_holds(width, content))
    base::misuse("value-width", fmt::format("{} does not hold {}", weighbridge::name(width), value));
  return Value(std::make_shared<Rep>(Rep{Kind::integer, width, content}));
}

Value Value::real(double value, DType width) {
  if (!width_keeps(width, value))
    base::misuse("value-width", fmt::format("{} does not keep {}", weighbridge::name(width), value));
  return Value(std::make_shared<Rep>(Rep{Kind::real, width, Real{value}}));
}

Value Value::text(std::string value) {
  return Value(std::make_shared<Rep>(Rep{Kind::text, DType::unknown, std::move(value)}));
}
Value Value::bytes(std::vector<std::byte> value) {
  return Value(std::make_shared<Rep>(Rep{Kind::bytes, DType::unknown, std::move(value)}));
}
Value Value::list(std::vector<Value> value) {
  return Value(std::make_shared<Rep>(Rep{Kind::list, DType::unknown, std::move(value)}));
}
Value Value::map(std::vector<Entry> value) {
  return Value(std::make_shared<Rep>(Rep{Kind::map, DType::unknown, std::move(value)}));
}
Value Value::numbers(DType type, std::vector<std::byte> little_endian) {
  const std::uint32_t bits = info(type).bits;
  if (bits == 0 || bits % 8 != 0 || little_endian.size() % (bits / 8) != 0) {
    base::misuse("value-size", fmt::format("{} bytes do not divide into elements of {}", little_endian.size(),
                                           weighbridge::name(type)));
  }
  return Value(std::make_shared<Rep>(Rep{Kind::numbers, type, std::move(little_endian)}));
}
Value Value::texts(Texts value) {
  return Value(std::make_shared<Rep>(Rep{Kind::texts, DType::unknown, std::move(value)}));
}
Value Value::foreign(std::string grammar, std::vector<std::byte> verbatim) {
  return Value(
      std::make_shared<Rep>(Rep{Kind::foreign, DType::unknown, Verbatim{std::move(verbatim), std::move(grammar)}}));
}

Value::Kind Value::kind() const noexcept { return rep_ ? rep_->kind : Kind::null; }
DType Value::type() const noexcept { return rep_ ? rep_->type : DType::unknown; }

std::optional<bool> Value::as_bool() const noexcept {
  if (kind() == Kind::boolean) return std::get<bool>(rep_->content);
  if (kind() == Kind::text) {
    const auto& text = std::get<std::string>(rep_->content);
    if (text == "true") return true;
    if (text == "false") return false;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Value::as_i64() const noexcept {
  if (kind() == Kind::integer) {
    const Integer value = std::get<Integer>(rep_->content);
    if (!value.negative && value.bits >> 63) return std::nullopt;
    return static_cast<std::int64_t>(value.bits);
  }
  if (kind() == Kind::text) return parse_canonical_integer<std::int64_t>(std::get<std::string>(rep_->content));
  return std::nullopt;
}

std::optional<std::uint64_t> Value::as_u64() const noexcept {
  if (kind() == Kind::integer) {
    const Integer value = std::get<Integer>(rep_->content);
    if (value.negative) return std::nullopt;
    return value.bits;
  }
  if (kind() == Kind::text) {
    const auto& text = std::get<std::string>(rep_->content);
    if (!text.empty() && text[0] == '-') return std::nullopt;
    return parse_canonical_integer<std::uint64_t>(text);
  }
  return std::nullopt;
}

std::optional<double> Value::as_f64() const noexcept {
  if (kind() == Kind::real) return std::get<Real>(rep_->content).value;
  if (const auto integer = as_i64()) {
    // From 2^63 on, a double does not convert back.
    const auto value = static_cast<double>(*integer);
    if (value < 9223372036854775808.0 && static_cast<std::int64_t>(value) == *integer) return value;
    return std::nullopt;
  }
  if (const auto integer = as_u64()) {
    const auto value = static_cast<double>(*integer);
    if (value < 18446744073709551616.0 && static_cast<std::uint64_t>(value) == *integer) return value;
    return std::nullopt;
  }
  if (kind() != Kind::text) return std::nullopt;
  const auto& text = std::get<std::string>(rep_->content);
  double value = 0;
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::string_view> Value::as_text() const noexcept {
  if (kind() != Kind::text) return std::nullopt;
  return std::get<std::string>(rep_->content);
}

std::span<const Value> Value::list() const noexcept {
  if (kind() != Kind::list) return {};
  return std::get<std::vector<Value>>(rep_->content);
}
std::span<const Value::Entry> Value::map() const noexcept {
  if (kind() != Kind::map) return {};
  return std::get<std::vector<Entry>>(rep_->content);
}
std::span<const std::byte> Value::bytes() const noexcept {
  if (kind() == Kind::bytes || kind() == Kind::numbers) return std::get<std::vector<std::byte>>(rep_->content);
  if (kind() == Kind::foreign) return std::get<Verbatim>(rep_->content).bytes;
  return {};
}
const Texts* Value::texts() const noexcept { return kind() == Kind::texts ? &std::get<Texts>(rep_->content) : nullptr; }
std::string_view Value::grammar() const noexcept {
  return kind() == Kind::foreign ? std::string_view(std::get<Verbatim>(rep_->content).grammar) : std::string_view{};
}

std::string Value::to_text() const {
  switch (kind()) {
    case Kind::null: return "null";
    case Kind::boolean: return *as_bool() ? "true" : "false";
    case Kind::integer: {
      const Integer value = std::get<Integer>(rep_->content);
      return value.negative ? fmt::format("{}", static_cast<std::int64_t>(value.bits)) : fmt::format("{}", value.bits);
    }
    case Kind::real: {
      const double value = std::get<Real>(rep_->content).value;
      return type() == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    }
    case Kind::text: return std::get<std::string>(rep_->content);
    case Kind::bytes:
    case Kind::foreign: return wire::encode_base64(bytes());
    case Kind::list:
    case Kind::map:
    case Kind::numbers:
    case Kind::texts: {
      wire::JsonWriter out(wire::JsonWriter::Style::compact);
      core::write_value(out, *this);
      return out.take();
    }
  }
  return {};
}

namespace {

// Containers that sort the keys of a map keep all that it says.
bool equal_maps(std::span<const Value::Entry> a, std::span<const Value::Entry> b) {
  if (a.size() != b.size()) return false;
  const auto by_key = [](std::span<const Value::Entry> entries) {
    std::vector<const Value::Entry*> out;
    for (const Value::Entry& entry : entries) out.push_back(&entry);
    std::sort(out.begin(), out.end(), [](const auto* x, const auto* y) { return x->first < y->first; });
    return out;
  };
  const auto mine = by_key(a), others = by_key(b);
  return std::equal(mine.begin(), mine.end(), others.begin(), [](const auto* x, const auto* y) { return *x == *y; });
}

}  // namespace

bool Value::operator==(const Value& other) const {
  if (rep_ == other.rep_) return true;
  if (kind() == Kind::map && other.kind() == Kind::map) return equal_maps(map(), other.map());
  return kind() == other.kind() && type() == other.type() && rep_ && other.rep_ && rep_->content == other.rep_->content;
}

const Value* find(std::span<const Value::Entry> entries, std::string_view key) noexcept {
  for (const Value::Entry& entry : entries)
    if (entry.first == key) return &entry.second;
  return nullptr;
}

namespace core {
namespace {

void write_numbers(wire::JsonWriter& out, DType type, std::span<const std::byte> data) {
  const std::size_t width = info(type).bits / 8;
  out.begin_array();
  for (std::size_t at = 0; at + width <= data.size(); at += width) {
    const std::byte* from = data.data() + at;
    switch (type) {
      case DType::u8: out.u64(base::load_le<std::uint8_t>(from)); break;
      case DType::u16: out.u64(base::load_le<std::uint16_t>(from)); break;
      case DType::u32: out.u64(base::load_le<std::uint32_t>(from)); break;
      case DType::u64: out.u64(base::load_le<std::uint64_t>(from)); break;
      case DType::i8: out.i64(static_cast<std::int8_t>(base::load_le<std::uint8_t>(from))); break;
      case DType::i16: out.i64(static_cast<std::int16_t>(base::load_le<std::uint16_t>(from))); break;
      case DType::i32: out.i64(static_cast<std::int32_t>(base::load_le<std::uint32_t>(from))); break;
      case DType::i64: out.i64(static_cast<std::int64_t>(base::load_le<std::uint64_t>(from))); break;
      case DType::f32: out.number(std::bit_cast<float>(base::load_le<std::uint32_t>(from))); break;
      case DType::f64: out.number(std::bit_cast<double>(base::load_le<std::uint64_t>(from))); break;
      case DType::boolean: out.boolean(*from != std::byte{0}); break;
      default: out.bytes({from, width}); break;  // not a number that JSON can hold
    }
  }
  out.end_array();
}

}  // namespace

std::optional<Value> number_at(DType type, const std::byte* from) {
  switch (type) {
    case DType::boolean: return Value::boolean(*from != std::byte{0});
    case DType::u8: return Value::integer(std::uint64_t{base::load_le<std::uint8_t>(from)}, type);
    case DType::u16: return Value::integer(std::uint64_t{base::load_le<std::uint16_t>(from)}, type);
    case DType::u32: return Value::integer(std::uint64_t{base::load_le<std::uint32_t>(from)}, type);
    case DType::u64: return Value::integer(base::load_le<std::uint64_t>(from), type);
    case DType::i8:
      return Value::integer(std::int64_t{static_cast<std::int8_t>(base::load_le<std::uint8_t>(from))}, type);
    case DType::i16:
      return Value::integer(std::int64_t{static_cast<std::int16_t>(base::load_le<std::uint16_t>(from))}, type);
    case DType::i32:
      return Value::integer(std::int64_t{static_cast<std::int32_t>(base::load_le<std::uint32_t>(from))}, type);
    case DType::i64: return Value::integer(static_cast<std::int64_t>(base::load_le<std::uint64_t>(from)), type);
    case DType::f16: return Value::real(wire::half_to_double(base::load_le<std::uint16_t>(from)), type);
    case DType::f32:
      return Value::real(static_cast<double>(std::bit_cast<float>(base::load_le<std::uint32_t>(from))), type);
    case DType::f64: return Value::real(std::bit_cast<double>(base::load_le<std::uint64_t>(from)), type);
    default: return std::nullopt;
  }
}

// The parsers' depth limit bounds the recursion: values nest no deeper than their file.
void write_value(wire::JsonWriter& out, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: out.null(); break;
    case Value::Kind::boolean: out.boolean(*value.as_bool()); break;
    case Value::Kind::integer:
      if (const auto natural = value.as_u64())
        out.u64(*natural);
      else
        out.i64(*value.as_i64());
      break;
    case Value::Kind::real:
      if (value.type() == DType::f64)
        out.number(*value.as_f64());
      else
        out.number(static_cast<float>(*value.as_f64()));
      break;
    case Value::Kind::text: out.string(*value.as_text()); break;
    case Value::Kind::bytes:
    case Value::Kind::foreign: out.bytes(value.bytes()); break;
    case Value::Kind::list:
      out.begin_array();
      for (const Value& element : value.list()) write_value(out, element);
      out.end_array();
      break;
    case Value::Kind::map:
      out.begin_object();
      for (const auto& [key, element] : value.map()) {
        out.key(key);
        write_value(out, element);
      }
      out.end_object();
      break;
    case Value::Kind::numbers: write_numbers(out, value.type(), value.bytes()); break;
    case Value::Kind::texts:
      out.begin_array();
      for (std::size_t i = 0; i < value.texts()->size(); ++i) out.string((*value.texts())[i]);
      out.end_array();
      break;
  }
}

}  // namespace core
}  // namespace weighbridge

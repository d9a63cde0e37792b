// SPDX-License-Identifier: Apache-2.0
// Builds values; recursion is at most kValueDepth levels deep.
#include "formats/pytorch/values.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "codecs/cast.h"
#include "core/archive/pickle_arrays.h"
#include "formats/pytorch/adder.h"
#include "formats/pytorch/globals.h"
#include "formats/pytorch/rebuild.h"

namespace weighbridge::pytorch {
namespace {

using wire::Pickle, wire::PickleKind;
using Ref = Pickle::Ref;

// A walk may visit this many values for each byte of the pickle, and make names and values of this many times its
// bytes. Values that are referred to many times would otherwise take exponential time; ordinary pickles visit one value
// in several bytes.
constexpr std::uint64_t kMaxVisits = 4, kMaxText = 16;

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Value text_value(std::string_view text) {
  return base::is_utf8(text) ? Value::text(std::string(text)) : Value::bytes(to_bytes(text));
}

Value long_value(std::string_view bytes) {
  if (bytes.size() == 9 && bytes[8] == 0) return Value::integer(base::load_le<std::uint64_t>(bytes.data()));
  return Value::bytes(to_bytes(bytes));
}

// Values of one kind as an array.
Value pack(std::vector<Value> values) {
  if (values.empty()) return Value::list({});
  const auto all = [&](Value::Kind kind, DType type) {
    return std::ranges::all_of(values, [&](const Value& v) { return v.kind() == kind && v.type() == type; });
  };
  std::vector<std::byte> bytes(values.size() * 8);
  if (all(Value::Kind::integer, DType::i64)) {
    for (std::size_t i = 0; i < values.size(); ++i)
      base::store_le(bytes.data() + 8 * i, static_cast<std::uint64_t>(values[i].as_i64().value_or(0)));
    return Value::numbers(DType::i64, std::move(bytes));
  }
  if (all(Value::Kind::text, DType::unknown)) {
    Texts texts;
    for (const Value& each : values) texts.push_back(each.as_text().value_or(""));
    return Value::texts(std::move(texts));
  }
  return Value::list(std::move(values));
}

}  // namespace

constexpr std::uint64_t kBudgetAlways = std::uint64_t{1} << 16;
WalkBudget::WalkBudget(const Pickle& pickle, const Limits& limits)
    : visits_(kBudgetAlways + kMaxVisits * (pickle.end() - pickle.begin())),
      text_(kBudgetAlways + kMaxText * (pickle.end() - pickle.begin())),
      memory_(limits.memory) {}

std::optional<Ref> Values::state(Ref ref) const {
  auto state = pickle_.state(ref);
  if (state && pickle_.kind(*state) == PickleKind::tuple && !pickle_.tuple(*state).empty())
    state = pickle_.tuple(*state)[0];
  if (!state || pickle_.kind(*state) != PickleKind::dict) return std::nullopt;
  return state;
}

std::optional<Ref> Values::member(Ref dict, std::string_view key) {
  if (!budget_.visit(pickle_.size(dict))) return std::nullopt;
  return core::pickled_member(pickle_, dict, key);
}

std::vector<Ref> Values::pairs(Ref ref) {
  std::vector<Ref> out;
  const Ref arguments = pickle_.arguments(ref);
  if (pickle_.kind(arguments) != PickleKind::tuple || pickle_.tuple(arguments).empty()) return out;
  const Ref last = pickle_.tuple(arguments).back();
  if (pickle_.kind(last) == PickleKind::dict) {
    return pickle_.items(last);
  }
  if (pickle_.kind(last) != PickleKind::list) return out;
  for (const Ref each : pickle_.items(last)) {
    if (!budget_.visit()) break;
    if (pickle_.kind(each) != PickleKind::list && pickle_.kind(each) != PickleKind::tuple) continue;
    const auto both = pickle_.items(each);
    if (both.size() == 2) out.insert(out.end(), both.begin(), both.end());
  }
  return out;
}

std::string Values::key(Ref ref, unsigned depth) {
  switch (pickle_.kind(ref)) {
    case PickleKind::text: {
      std::string_view text = pickle_.text(ref).value_or("...");
      budget_.text(text.size());
      return std::string(text);
    }
    case PickleKind::none: return "None";
    case PickleKind::boolean: return pickle_.boolean(ref) ? "True" : "False";
    case PickleKind::tuple: {
      std::string out = "(";
      if (depth < 2)
        for (const Ref each : pickle_.tuple(ref)) {
          if (!budget_.visit()) break;
          out += (out.size() > 1 ? ", " : "") + key(each, depth + 1);
        }
      return out + ")";
    }
    default: {
      const auto value = scalar(ref, kValueDepth - 1);
      return value ? value->to_text() : spell_class(pickle_, ref);
    }
  }
}

// One number, text or the like.
std::optional<Value> Values::scalar(Ref ref, unsigned depth) {
  switch (pickle_.kind(ref)) {
    case PickleKind::none: return Value();
    case PickleKind::boolean: return Value::boolean(pickle_.boolean(ref));
    case PickleKind::integer: return Value::integer(pickle_.integer(ref));
    case PickleKind::long_bytes: return long_value(pickle_.text(ref).value_or(""));
    case PickleKind::long_text: return text_value(pickle_.text(ref).value_or(""));
    case PickleKind::real: return Value::real(pickle_.real(ref));
    case PickleKind::text:
    case PickleKind::bytes: return string_value(ref, pickle_.kind(ref) == PickleKind::text);
    case PickleKind::global: {
      if (!is_known(pickle_.module(ref), pickle_.name(ref)) || pickle_.computed(ref)) return std::nullopt;
      return text_value(std::string(pickle_.module(ref)) + "." + std::string(pickle_.name(ref)));
    }
    case PickleKind::object: return depth < kValueDepth ? object_value(ref, depth) : std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<std::string> Values::read_string(Ref ref) {
  if (!budget_.text(pickle_.length(ref))) return std::nullopt;
  if (const auto text = pickle_.text(ref)) return std::string(*text);
  const auto span = pickle_.span(ref);
  if (!span) return std::nullopt;
  std::string out(base::to_size(span->length), '\0');
  input_.read(span->offset, std::as_writable_bytes(std::span(out)));
  return out;
}
// What bytes_in() found.
std::optional<std::string> Values::read_bytes(Ref ref) {
  auto string = read_string(ref);
  if (string && pickle_.kind(ref) == PickleKind::text && !pickle_.is_str(ref)) return wire::from_latin1(*string);
  return string;
}
std::optional<Value> Values::string_value(Ref ref, bool text) {
  const auto string = read_string(ref);
  if (!string) return std::nullopt;
  return text ? text_value(*string) : Value::bytes(to_bytes(*string));
}

// The values of objects of a few harmless classes.
std::optional<Value> Values::object_value(Ref ref, unsigned depth) {
  const Ref callee = pickle_.callee(ref), arguments_ref = pickle_.arguments(ref);
  if (pickle_.kind(callee) != PickleKind::global || pickle_.kind(arguments_ref) != PickleKind::tuple)
    return std::nullopt;
  const auto arguments = pickle_.tuple(arguments_ref);
  switch (holds_of(pickle_.module(callee), pickle_.name(callee))) {
    case Holds::encoded: {
      const auto inner = bytes_in(pickle_, ref);
      if (!inner) return arguments.empty() ? std::optional(Value::bytes({})) : std::nullopt;
      const auto string = read_bytes(*inner);
      if (!string) return std::nullopt;
      return Value::bytes(to_bytes(*string));
    }
    case Holds::device: {
      std::string out;
      for (const Ref each : arguments) {
        const auto value = pickle_.kind(each) == PickleKind::object ? std::nullopt : scalar(each, depth);
        if (value && value->kind() != Value::Kind::null) out += (out.empty() ? "" : ":") + value->to_text();
      }
      return text_value(out);
    }
    case Holds::path: {
      std::string out;
      for (const Ref each : arguments) {
        if (pickle_.kind(each) != PickleKind::text) return std::nullopt;
        if (!out.empty() && !out.ends_with('/')) out += '/';
        out += pickle_.text(each).value_or("");
      }
      return text_value(out);
    }
    case Holds::one: {
      if (arguments.size() != 1 || pickle_.kind(arguments[0]) == PickleKind::object) return std::nullopt;
      return plain(arguments[0], depth + 1);
    }
    case Holds::list: {
      const bool inside = arguments.size() == 1 && (pickle_.kind(arguments[0]) == PickleKind::list ||
                                                    pickle_.kind(arguments[0]) == PickleKind::tuple);
      return inside ? plain_list(arguments[0], depth + 1) : std::nullopt;
    }
    case Holds::numpy_scalar: return numpy_scalar(arguments);
    case Holds::node: {
      const auto held = state(ref);
      const auto inner = held ? member(*held, "_val") : std::nullopt;
      return inner && pickle_.kind(*inner) != PickleKind::object ? scalar(*inner, depth) : std::nullopt;
    }
    case Holds::type: {
      const auto type = core::pickled_type(pickle_, ref);
      return type ? std::optional(text_value(type->name)) : std::nullopt;
    }
    case Holds::date: return date(pickle_.name(callee), arguments);
    case Holds::numbers: {
      const bool inside = arguments.size() == 1 && pickle_.kind(arguments[0]) == PickleKind::tuple;
      return plain_list(inside ? arguments[0] : arguments_ref, depth + 1);
    }
    default: return std::nullopt;
  }
}

// datetime(10 bytes), date(4 bytes): ISO 8601.
std::optional<Value> Values::date(std::string_view name, std::span<const Ref> arguments) {
  if (arguments.empty()) return std::nullopt;
  const auto inner = bytes_in(pickle_, arguments[0]);
  const auto string = inner ? read_bytes(*inner) : std::nullopt;
  if (!string) return std::nullopt;
  const std::vector<std::byte> bytes = to_bytes(*string);
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const auto padded = [](unsigned value, std::size_t width) {
    const std::string text = std::to_string(value);
    return std::string(width - std::min(width, text.size()), '0') + text;
  };
  if (bytes.size() < 4 || (name == "datetime" && bytes.size() < 10)) return std::nullopt;
  std::string out = padded(at(0) * 256 + at(1), 4) + "-" + padded(at(2), 2) + "-" + padded(at(3), 2);
  if (name == "datetime") {
    out += "T" + padded(at(4), 2) + ":" + padded(at(5), 2) + ":" + padded(at(6), 2);
    if (const unsigned micro = at(7) << 16U | at(8) << 8U | at(9); micro != 0) out += "." + padded(micro, 6);
  }
  return Value::text(std::move(out));
}

std::optional<Value> Values::numpy_scalar(std::span<const Ref> arguments) {
  if (arguments.size() != 2) return std::nullopt;
  const auto type = core::pickled_type(pickle_, arguments[0]);
  const auto inner = bytes_in(pickle_, arguments[1]);
  auto bytes = inner ? read_bytes(*inner) : std::nullopt;
  if (!type || !bytes) return std::nullopt;
  if (type->word.holds == core::NumpyWord::Holds::texts) {
    auto text = core::numpy_text(*bytes, type->word);
    return text ? std::optional(Value::text(*std::move(text))) : Value::bytes(to_bytes(*bytes));
  }
  if (type->word.holds == core::NumpyWord::Holds::raw) return Value::bytes(to_bytes(*bytes));
  const DType dtype = type->word.dtype;
  const DTypeInfo& element = info(dtype);
  if (type->word.holds != core::NumpyWord::Holds::numbers || bytes->size() * 8 != element.bits) return std::nullopt;
  const auto stored = std::as_writable_bytes(std::span(*bytes));
  if (type->big()) base::swap_units(stored, element.swap_bytes);
  if (element.kind == DTypeKind::real) {
    double value = 0;
    codecs::cast(dtype, stored, DType::f64, std::as_writable_bytes(std::span(&value, 1)), 1);
    return Value::real(value, dtype == DType::f64 || dtype == DType::f16 ? dtype : DType::f32);
  }
  // The real part and the imaginary part, as of a complex of Python.
  if (element.kind == DTypeKind::complex)
    return Value::numbers(dtype == DType::complex64 ? DType::f32 : DType::f64, to_bytes(*bytes));
  std::uint64_t bits = 0;
  for (std::size_t i = bytes->size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>((*bytes)[i]);
  const unsigned unused = 64 - element.bits;
  switch (element.kind) {
    case DTypeKind::boolean: return Value::boolean(bits != 0);
    case DTypeKind::signed_integer: return Value::integer(static_cast<std::int64_t>(bits << unused) >> unused, dtype);
    default: return Value::integer(bits, dtype);
  }
}

// A scalar, or nested lists of scalars.
std::optional<Value> Values::plain(Ref ref, unsigned depth) {
  switch (pickle_.kind(ref)) {
    case PickleKind::tuple:
    case PickleKind::list:
    case PickleKind::set: return depth < kValueDepth ? plain_list(ref, depth) : std::nullopt;
    default: return scalar(ref, depth);
  }
}

// Collect 64-bit numbers in an array directly: as values they would take sixteen times the memory.
std::optional<Value> Values::integers(Ref ref) {
  std::vector<std::byte> bytes;
  bool good = true;
  pickle_.for_each(ref, [&](Ref each) {
    good = pickle_.kind(each) == PickleKind::integer;
    if (!good) return false;
    bytes.resize(bytes.size() + 8);
    base::store_le(bytes.data() + bytes.size() - 8, static_cast<std::uint64_t>(pickle_.integer(each)));
    return true;
  });
  if (!good || bytes.empty() || !budget_.visit(bytes.size() / 8)) return std::nullopt;
  return Value::numbers(DType::i64, std::move(bytes));
}

std::optional<Value> Values::plain_list(Ref ref, unsigned depth) {
  if (depth <= kValueDepth)
    if (auto numbers = integers(ref); numbers || budget_.end != WalkEnd::done) return numbers;
  std::vector<Value> out;
  bool good = depth <= kValueDepth;
  pickle_.for_each(ref, [&](Ref each) {
    good =
        good && budget_.visit() && budget_.values(1) && pickle_.kind(each) != PickleKind::dict && !rebuild_would(each);
    auto value = good ? plain(each, depth + 1) : std::nullopt;
    good = value.has_value();
    if (good) out.push_back(*std::move(value));
    return good;
  });
  if (!good) {
    if (budget_.end == WalkEnd::done) budget_.give_back(out.size() + 1);
    return std::nullopt;
  }
  const std::uint64_t count = out.size();
  Value packed = pack(std::move(out));
  if (packed.kind() != Value::Kind::list) budget_.give_back(count);
  return packed;
}
bool Values::rebuild_would(Ref ref) const {
  const PickleKind kind = pickle_.kind(ref);
  return kind == PickleKind::persistent || (kind == PickleKind::object && rebuild(pickle_, ref).has_value());
}

// Dictionaries and lists of plain values as one value.
std::optional<Value> Values::whole(Ref ref, unsigned depth) {
  if (depth >= kValueDepth || !budget_.visit()) return std::nullopt;
  std::vector<Ref> pairs;
  switch (pickle_.kind(ref)) {
    case PickleKind::tuple:
    case PickleKind::list:
    case PickleKind::set: return whole_list(ref, depth);
    case PickleKind::dict: pairs = pickle_.items(ref); break;
    case PickleKind::object: {
      const Ref callee = pickle_.callee(ref);
      if (pickle_.kind(callee) != PickleKind::global ||
          holds_of(pickle_.module(callee), pickle_.name(callee)) != Holds::items)
        return scalar(ref, depth);
      pairs = pickle_.items(ref);
      if (pairs.empty()) pairs = this->pairs(ref);
      break;
    }
    default: return scalar(ref, depth);
  }
  std::vector<Value::Entry> out;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    auto value = whole(pairs[i + 1], depth + 1);
    std::string name = key(pairs[i]);
    if (!value || !base::is_utf8(name) || !budget_.values(1)) return std::nullopt;
    out.emplace_back(std::move(name), *std::move(value));
  }
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : out) keys.push_back(key);
  std::ranges::sort(keys);
  if (std::ranges::adjacent_find(keys) != keys.end()) return std::nullopt;
  return Value::map(std::move(out));
}

std::optional<Value> Values::whole_list(Ref ref, unsigned depth) {
  if (auto numbers = integers(ref); numbers || budget_.end != WalkEnd::done) return numbers;
  std::vector<Value> out;
  for (const Ref each : pickle_.items(ref)) {
    auto value = budget_.values(1) ? whole(each, depth + 1) : std::nullopt;
    if (!value) return std::nullopt;
    out.push_back(*std::move(value));
  }
  const std::uint64_t count = out.size();
  Value packed = pack(std::move(out));
  if (packed.kind() != Value::Kind::list) budget_.give_back(count);
  return packed;
}

}  // namespace weighbridge::pytorch

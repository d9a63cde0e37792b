// SPDX-License-Identifier: Apache-2.0
// Metadata values as Python objects, and back.
#include "core.h"

namespace weighbridge::python {
namespace {

nb::bytes as_bytes(std::span<const std::byte> bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class T> nb::list numbers(std::span<const std::byte> bytes) {
  nb::list out;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    out.append(value);
  }
  return out;
}

nb::object numbers(DType type, std::span<const std::byte> bytes) {
  switch (type) {
    case DType::u8: return numbers<std::uint8_t>(bytes);
    case DType::i8: return numbers<std::int8_t>(bytes);
    case DType::u16: return numbers<std::uint16_t>(bytes);
    case DType::i16: return numbers<std::int16_t>(bytes);
    case DType::u32: return numbers<std::uint32_t>(bytes);
    case DType::i32: return numbers<std::int32_t>(bytes);
    case DType::u64: return numbers<std::uint64_t>(bytes);
    case DType::i64: return numbers<std::int64_t>(bytes);
    case DType::f32: return numbers<float>(bytes);
    case DType::f64: return numbers<double>(bytes);
    default: return as_bytes(bytes);
  }
}

}  // namespace

nb::object to_python(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return nb::none();
    case Value::Kind::boolean: return nb::bool_(value.as_bool().value_or(false));
    case Value::Kind::integer:
      if (const auto number = value.as_i64()) return nb::int_(*number);
      return nb::int_(value.as_u64().value_or(0));
    case Value::Kind::real: return nb::float_(value.as_f64().value_or(0));
    case Value::Kind::text: return text(value.as_text().value_or(""));
    case Value::Kind::bytes: return as_bytes(value.bytes());
    case Value::Kind::list: {
      nb::list out;
      for (const Value& item : value.list()) out.append(to_python(item));
      return out;
    }
    case Value::Kind::map: return to_dict(value.map());
    case Value::Kind::numbers: return numbers(value.type(), value.bytes());
    case Value::Kind::texts: {
      nb::list out;
      const Texts& texts = *value.texts();
      for (std::size_t i = 0; i < texts.size(); ++i) out.append(text(texts[i]));
      return out;
    }
    case Value::Kind::foreign: return as_bytes(value.bytes());
  }
  return nb::none();
}

nb::dict to_dict(std::span<const Value::Entry> entries) {
  nb::dict out;
  for (const auto& [key, value] : entries) out[text(key)] = to_python(value);
  return out;
}

Value to_value(nb::handle object) {
  if (object.is_none()) return {};
  if (PyBool_Check(object.ptr())) return Value::boolean(nb::cast<bool>(object));
  if (PyLong_Check(object.ptr())) {
    std::int64_t small = 0;
    if (nb::try_cast(object, small)) return Value::integer(small);
    std::uint64_t large = 0;
    if (nb::try_cast(object, large)) return Value::integer(large);
    throw nb::value_error("metadata: an integer that does not fit 64 bits");
  }
  if (PyFloat_Check(object.ptr())) return Value::real(nb::cast<double>(object));
  if (PyUnicode_Check(object.ptr())) return Value::text(argument<std::string>("a text of metadata", object));
  if (PyBytes_Check(object.ptr())) {
    const auto bytes = nb::cast<nb::bytes>(object);
    const auto* first = reinterpret_cast<const std::byte*>(bytes.c_str());
    return Value::bytes({first, first + bytes.size()});
  }
  struct Level {  // raises RecursionError for what contains itself
    Level() {
      if (Py_EnterRecursiveCall(" in metadata")) throw nb::python_error();
    }
    ~Level() { Py_LeaveRecursiveCall(); }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
  } const level;
  if (PyDict_Check(object.ptr())) {
    std::vector<Value::Entry> out;
    for (auto [key, value] : nb::cast<nb::dict>(object))
      out.emplace_back(argument<std::string>("a key of metadata", key), to_value(value));
    return Value::map(std::move(out));
  }
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    std::vector<Value> out;
    for (const nb::handle item : object) out.push_back(to_value(item));
    return Value::list(std::move(out));
  }
  throw nb::type_error(
      shown("metadata cannot hold a value of type " + nb::cast<std::string>(object.type().attr("__name__"))).c_str());
}

std::vector<std::string> option_texts(OptionOf kind, const std::string& name, nb::handle value) {
  if (value.is_none()) return {};
  const OptionInfo* const option = find_option(kind, name);
  if (option == nullptr) return {std::string()};  // set() says that there is none
  const OptionType type = option->type;
  if (option->repeats && !nb::isinstance<nb::str>(value) && nb::isinstance<nb::iterable>(value)) {
    std::vector<std::string> out;
    for (const nb::handle each : nb::iter(value))
      for (std::string& text : option_texts(kind, name, each)) out.push_back(std::move(text));
    return out;
  }
  const bool counts = type == OptionType::number || (type == OptionType::size && !nb::isinstance<nb::str>(value));
  if (type == OptionType::toggle) return {argument<bool>(name, value) ? "true" : "false"};
  if (counts) return {std::to_string(argument<std::uint64_t>(name, value))};
  if (type == OptionType::fraction) {
    argument<double>(name, value);
    return {nb::cast<std::string>(nb::str(value))};
  }
  if (type == OptionType::file) return {to_input(value).path};
  return {argument<std::string>(name, value)};
}

}  // namespace weighbridge::python

// SPDX-License-Identifier: Apache-2.0
// CBOR items to Values and back.
#include "formats/ztensor/cbor_value.h"

#include <span>
#include <utility>

#include "base/utf8.h"
#include "core/model/values.h"
#include "wire/half.h"
#include "wire/keys.h"

namespace weighbridge::ztensor {
namespace {

using wire::CborKind;

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Reads one composite item that is well-formed and within the budget. The depth was checked before, which bounds the
// recursion.
class ItemReader {
 public:
  ItemReader(std::string_view item, std::size_t offset, std::optional<std::size_t>& duplicate, Floats floats)
      : item_(item), offset_(offset), in_(item, UINT32_MAX), duplicate_(duplicate), floats_(floats) {}

  Value read() {
    switch (in_.peek()) {
      case CborKind::array: return read_list();
      case CborKind::map: return read_map();
      default: return read_scalar(in_, floats_);
    }
  }

  static Value read_scalar(wire::CborReader& in, Floats floats) {
    switch (in.peek()) {
      case CborKind::unsigned_integer: {
        std::uint64_t value = 0;
        in.read_u64(value);
        return Value::integer(value);
      }
      case CborKind::text: {
        wire::CborString text;
        if (!in.read_text(text)) return {};
        std::string scratch;
        return Value::text(std::string(wire::cbor_text(text, scratch)));
      }
      case CborKind::bytes: {
        wire::CborString data;
        if (!in.read_bytes(data)) return {};
        std::string scratch;
        return Value::bytes(to_bytes(wire::cbor_text(data, scratch)));
      }
      case CborKind::boolean: {
        bool value = false;
        in.read_bool(value);
        return Value::boolean(value);
      }
      case CborKind::null: in.read_null(); return {};
      case CborKind::negative_integer: return read_negative(in);
      case CborKind::floating: return read_real(in, floats);
      default: {
        std::string_view item;
        if (!in.skip_item(item)) return {};
        return foreign(item);
      }
    }
  }

 private:
  static Value read_negative(wire::CborReader& in) {
    const wire::CborReader before = in;
    wire::CborInteger value;
    if (!in.read_integer(value)) return {};
    if (const auto small = value.as_i64()) return Value::integer(*small);
    in = before;
    std::string_view item;
    in.skip_item(item);
    return foreign(item);
  }

  static Value read_real(wire::CborReader& in, Floats floats) {
    wire::CborFloat value;
    if (!in.read_float(value)) return {};
    if (floats == Floats::shortest) return Value::real(value.value);
    return Value::real(value.value, value.width == 2 ? DType::f16 : value.width == 4 ? DType::f32 : DType::f64);
  }

  Value read_list() {
    std::vector<Value> elements;
    in_.enter_array();
    while (in_.next_element()) elements.push_back(read());
    return Value::list(std::move(elements));
  }

  // A map with a key other than text is kept verbatim as a whole.
  Value read_map() {
    const std::size_t begin = in_.offset();
    std::vector<Value::Entry> entries;
    std::vector<wire::Key> keys, other_keys;
    in_.enter_map();
    while (in_.next_entry()) {
      wire::CborString key;
      std::string_view raw;
      const std::size_t at = offset_ + in_.offset();
      if (in_.peek() == CborKind::text) {
        in_.read_text(key);
        std::string scratch;
        std::string text(wire::cbor_text(key, scratch));
        entries.emplace_back(std::move(text), read());
        keys.push_back({{}, at});
      } else {
        in_.skip_item(raw);
        other_keys.push_back({raw, at});
        read();
      }
    }
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i].text = entries[i].first;
    for (auto* list : {&keys, &other_keys})
      if (const auto twice = wire::first_duplicate(*list); twice && (!duplicate_ || *twice < *duplicate_))
        duplicate_ = twice;
    if (other_keys.empty()) return Value::map(std::move(entries));
    return foreign(item_.substr(begin, in_.offset() - begin));
  }

  std::string_view item_;
  std::size_t offset_;
  wire::CborReader in_;
  std::optional<std::size_t>& duplicate_;
  const Floats floats_;
};

void write_real(wire::CborWriter& out, double value, DType width, Floats floats) {
  if (floats == Floats::shortest)
    out.floating(value);
  else if (width == DType::f16)
    out.float16(wire::half_bits(value));
  else if (width == DType::f32)
    out.float32(static_cast<float>(value));
  else
    out.float64(value);
}

}  // namespace

Value foreign(std::string_view item) { return Value::foreign("cbor", to_bytes(item)); }

Value read_value(wire::CborReader& in, core::Budget& budget, std::optional<std::size_t>& duplicate, Floats floats) {
  const CborKind kind = in.peek();
  if (kind != CborKind::array && kind != CborKind::map) return ItemReader::read_scalar(in, floats);
  const std::size_t offset = in.offset();
  std::string_view item;
  if (!in.skip_item(item)) return {};
  if (!budget.take(item.size(), kValueCost)) return foreign(item);
  return ItemReader(item, offset, duplicate, floats).read();
}

void write_value(wire::CborWriter& out, const Value& value, Floats floats) {
  switch (value.kind()) {
    case Value::Kind::null: out.null(); break;
    case Value::Kind::boolean: out.boolean(*value.as_bool()); break;
    case Value::Kind::integer:
      if (const auto natural = value.as_u64())
        out.u64(*natural);
      else
        out.i64(*value.as_i64());
      break;
    case Value::Kind::real: write_real(out, *value.as_f64(), value.type(), floats); break;
    case Value::Kind::text: out.text(*value.as_text()); break;
    case Value::Kind::bytes: out.bytes(value.bytes()); break;
    case Value::Kind::list:
      out.array(value.list().size());
      for (const Value& element : value.list()) write_value(out, element, floats);
      break;
    case Value::Kind::map:
      out.map(value.map().size());
      for (const auto& [key, element] : value.map()) {
        out.text(key);
        write_value(out, element, floats);
      }
      break;
    case Value::Kind::numbers: {
      const std::size_t width = info(value.type()).bits / 8;
      out.array(value.bytes().size() / width);
      for (std::size_t at = 0; at < value.bytes().size(); at += width) {
        if (const auto number = core::number_at(value.type(), value.bytes().data() + at))
          write_value(out, *number, floats);
        else
          out.bytes(value.bytes().subspan(at, width));
      }
      break;
    }
    case Value::Kind::texts:
      out.array(value.texts()->size());
      for (std::size_t i = 0; i < value.texts()->size(); ++i) {
        const std::string_view text = (*value.texts())[i];
        if (base::is_utf8(text))
          out.text(text);
        else
          out.bytes(std::as_bytes(std::span(text)));
      }
      break;
    case Value::Kind::foreign: {
      const auto bytes = value.bytes();
      if (value.grammar() == "cbor")
        out.raw({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      else
        out.bytes(bytes);
      break;
    }
  }
}

}  // namespace weighbridge::ztensor

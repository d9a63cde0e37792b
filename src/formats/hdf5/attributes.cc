// SPDX-License-Identifier: Apache-2.0
// Reads attributes into values: numbers and booleans keep their width, texts their characters. An array with several
// dimensions is a map of its shape and its values. A value of another type is the bytes of its message.
#include "formats/hdf5/object_header.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "codecs/cast.h"
#include "core/model/values.h"
#include "core/model/words.h"
#include "formats/hdf5/heap.h"
#include "formats/hdf5/types.h"

namespace weighbridge::hdf5 {
namespace {

constexpr std::uint64_t kCost = 160;     // of an entry, besides its bytes
constexpr std::uint64_t kTextCost = 16;  // of a text in an array

Value shaped(Value values, const Dataspace& space) {
  if (space.shape.size() < 2) return values;
  std::vector<std::byte> shape(8 * space.shape.size());
  for (std::size_t i = 0; i < space.shape.size(); ++i) base::store_le(shape.data() + 8 * i, space.shape[i]);
  return Value::map({{"shape", Value::numbers(DType::u64, std::move(shape))}, {"values", std::move(values)}});
}

// The characters of a text of fixed size.
std::string_view trimmed(std::string_view text, std::uint8_t padding) {
  constexpr std::uint8_t kEndsWithZero = 0, kSpaces = 2;
  if (padding == kEndsWithZero) return text.substr(0, text.find('\0'));
  const char filler = padding == kSpaces ? ' ' : '\0';
  while (text.ends_with(filler)) text.remove_suffix(1);
  return text;
}

class AttributeReader {
 public:
  AttributeReader(File& file, Cursor in) : file_(file), in_(in) {}

  Attribute run() {
    Attribute out;
    out.at = in_.offset();
    Cursor whole = in_;
    const std::string_view bytes = whole.take(whole.left());
    const std::uint8_t version = in_.u8(), flags = in_.u8();
    if (version < 1 || version > 3) in_.fail("an attribute of version 1, 2 or 3", version);
    const std::uint16_t name = in_.u16(), type = in_.u16(), space = in_.u16();
    if (version == 3) in_.skip(1);
    const auto field = [&](std::uint16_t size) {
      const Cursor part = in_.sub(size);
      if (version == 1) in_.skip(std::min<std::uint64_t>((8U - size % 8U) % 8U, in_.left()));
      return part;
    };
    Cursor text = field(name);
    out.name = text.take(text.left());
    while (out.name.ends_with('\0')) out.name.pop_back();
    out.escaped = escape_bytes(out.name);
    ObjectHeader type_header, space_header;
    const bool shares = version > 1;
    type_ = read_datatype(content_of(file_, Message::datatype, field(type), shares && (flags & 1U) != 0, type_header));
    space_ =
        read_dataspace(content_of(file_, Message::dataspace, field(space), shares && (flags & 2U) != 0, space_header));
    file_.keep(kCost + out.name.size());
    if (space_.null) return out;
    const auto count = base::element_count(space_.shape);
    const auto size = count ? base::checked_mul(*count, type_.size) : std::nullopt;
    if (!size || *size > in_.left())
      in_.fail({"a value of ", core::of_shape(space_.shape)}, core::in_bytes(in_.left()));
    count_ = *count;
    auto value = read_value();
    if (!value) {
      out.unknown_type = type_.name;
      file_.keep(bytes.size());
      const auto data = std::as_bytes(std::span(bytes));
      value = Value::foreign("hdf5", {data.begin(), data.end()});
    }
    out.value = *std::move(value);
    return out;
  }

 private:
  std::optional<Value> read_value() {
    if (type_.dtype != DType::unknown) return numbers();
    if (type_.kind == Class::text || type_.variable_text) return read_texts(file_, in_, type_, space_);
    return std::nullopt;
  }

  std::optional<Value> numbers() {
    const std::string_view bytes = in_.take(count_ * type_.size);
    file_.keep(bytes.size());
    const auto data = std::as_bytes(std::span(bytes));
    std::vector<std::byte> little(data.begin(), data.end());
    if (type_.order == Order::big) base::swap_units(little, info(type_.dtype).swap_bytes);
    if (space_.shape.empty() && type_.dtype == DType::f16) return core::number_at(DType::f16, little.data());
    const DType own = type_.dtype;
    if (info(own).kind == DTypeKind::real && info(own).bits < 32) {  // which f32 holds exactly
      std::vector<std::byte> wide(4 * base::to_size(count_));
      file_.keep(wide.size());
      codecs::cast(own, little, DType::f32, wide, count_);
      little.swap(wide);
      type_.dtype = DType::f32;
    }
    if (space_.shape.empty())
      if (auto scalar = core::number_at(type_.dtype, little.data())) return *std::move(scalar);  // not a complex number
    if (type_.dtype == DType::boolean) {
      std::vector<Value> all;
      file_.keep(little.size() * sizeof(Value));
      for (const std::byte each : little) all.push_back(Value::boolean(each != std::byte{0}));
      return shaped(Value::list(std::move(all)), space_);
    }
    return shaped(Value::numbers(type_.dtype, std::move(little)), space_);
  }

  File& file_;
  Cursor in_;
  Datatype type_;
  Dataspace space_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::optional<Value> read_texts(File& file, Cursor in, const Datatype& type, const Dataspace& space) {
  Texts all;
  const std::uint64_t count = base::element_count(space.shape).value_or(UINT64_MAX);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string_view text;
    if (type.variable_text) {
      const std::uint32_t length = in.u32();
      const std::uint64_t collection = in.address();
      const std::uint32_t index = in.u32();
      if (collection != kUndefined && index != 0 && length != 0) {
        text = file.global_object(collection, index);
        if (length > text.size()) in.fail("a text of " + core::bytes_text(length), core::bytes_text(text.size()));
        text = text.substr(0, length);
        while (text.ends_with('\0')) text.remove_suffix(1);
      }
    } else {
      text = trimmed(in.take(type.size), type.padding);
    }
    if (!base::is_utf8(text)) return std::nullopt;
    file.keep(text.size() + kTextCost);
    all.push_back(text);
  }
  if (space.shape.empty()) return Value::text(std::string(all[0]));
  return shaped(Value::texts(std::move(all)), space);
}

void read_attributes(File& file, const ObjectHeader& header, const std::function<void(Attribute)>& take,
                     const std::function<void(const Broken&)>& broken) {
  const auto add = [&](Cursor in, const std::function<void(Attribute)>& use) {
    try {
      use(AttributeReader(file, in).run());
    } catch (const Broken& fault) {
      if (fault.whole) throw;
      broken(fault);
    }
  };
  for (const HeaderMessage& message : header.messages) {
    if (message.type != Message::attribute) continue;
    if ((message.flags & kShared) != 0)
      broken({file.rules.kMessage, message.at, {}, "a shared attribute"});
    else
      add(Cursor(file, message.bytes, message.at, file.rules.kAttribute), take);
  }
  const HeaderMessage* const info = header.find(Message::attribute_info);
  if (info == nullptr) return;
  Cursor in(file, info->bytes, info->at, file.rules.kAttribute);
  if (in.u8() != 0) in.fail("attribute information of version 0");
  if ((in.u8() & 1U) != 0) in.skip(2);
  const std::uint64_t heap_at = in.address(), tree = in.address();
  if (heap_at == kUndefined || tree == kUndefined) return;
  FractalHeap heap(file, heap_at);
  // The records are sorted by hash, not by name.
  std::vector<std::pair<std::uint32_t, Attribute>> dense;
  walk_tree2(file, tree, Record::attribute_name, file.rules.kAttribute, [&](Cursor record) {
    const Cursor id = record.sub(heap.id_size());
    if ((record.u8() & kShared) != 0) return broken({file.rules.kMessage, record.offset(), {}, "a shared attribute"});
    const std::uint32_t order = record.u32();
    const std::string bytes(heap.object(id));
    add(Cursor(file, bytes, heap.found_at(), file.rules.kAttribute),
        [&](Attribute made) { dense.emplace_back(order, std::move(made)); });
  });
  std::ranges::stable_sort(dense, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.name < b.second.name;
  });
  for (auto& each : dense) take(std::move(each.second));
}

}  // namespace weighbridge::hdf5

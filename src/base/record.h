// SPDX-License-Identifier: Apache-2.0
// Records of fixed layout, each stated once: WB_RECORD lists the fields in the order of the file, and the struct, the
// record's size, the offset of a field, loading, storing and the rows of explain() come from that list. Numbers are
// little-endian on every processor, and nothing is between two fields.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/endian.h"

namespace weighbridge::base {

// How explain() spells a field.
enum class FieldForm : std::uint8_t { number, signed_number, real, text, hex };
// A field as explain() shows it. A list has `count` elements of `size` bytes, "name[0]" and so on.
struct FieldRow {
  std::string_view name;
  std::size_t size;
  FieldForm form;
  std::size_t count = 0;  // 0: not a list
};

template <class T> using Field = T;  // lets a declaration begin with an array's type
struct FieldNote {
  std::string_view name;
  std::optional<FieldForm> form{};  // nullopt: that of the type
  constexpr FieldNote(std::string_view identifier, std::string_view shown = {})
      : name(shown.empty() ? identifier : shown) {}
  constexpr FieldNote(std::string_view identifier, FieldForm as, std::string_view shown = {})
      : FieldNote(identifier, shown) {
    form = as;
  }
};

// WB_RECORD(Name, (type, field), (type, field, form), (type, field, form, "name for explain()"), ...); the form may be
// left out. Types are u8 to u64, other numbers of fixed size, and arrays: u32[4] is a list, char[4] a text, and
// std::byte[8] has no value that explain() shows.
#define WB_RECORD(Name, ...)                                                                   \
  struct Name {                                                                                \
    using u8 = std::uint8_t;                                                                   \
    using u16 = std::uint16_t;                                                                 \
    using u32 = std::uint32_t;                                                                 \
    using u64 = std::uint64_t;                                                                 \
    WB_RECORD_EACH(WB_RECORD_MEMBER, __VA_ARGS__)                                              \
    template <class Self, class Visit> static constexpr void each(Self& record, Visit visit) { \
      using enum ::weighbridge::base::FieldForm;                                               \
      WB_RECORD_EACH(WB_RECORD_VISIT, __VA_ARGS__)                                             \
    }                                                                                          \
    bool operator==(const Name&) const = default;                                              \
  }
#define WB_RECORD_MEMBER(type, field, ...) ::weighbridge::base::Field<type> field{};
#define WB_RECORD_VISIT(type, field, ...) \
  visit(record.field, ::weighbridge::base::FieldNote(#field __VA_OPT__(, ) __VA_ARGS__));
// macro(...) for each list in parentheses, at most 40.
#define WB_RECORD_EACH(macro, ...) WB_RECORD_27(WB_RECORD_STEP(macro, __VA_ARGS__))
#define WB_RECORD_STEP(macro, field, ...) \
  macro field __VA_OPT__(WB_RECORD_NEXT WB_RECORD_NOTHING()()(macro, __VA_ARGS__))
#define WB_RECORD_NEXT() WB_RECORD_STEP
#define WB_RECORD_NOTHING()
#define WB_RECORD_27(...) WB_RECORD_9(WB_RECORD_9(WB_RECORD_9(__VA_ARGS__)))
#define WB_RECORD_9(...) WB_RECORD_3(WB_RECORD_3(WB_RECORD_3(__VA_ARGS__)))
#define WB_RECORD_3(...) WB_RECORD_1(WB_RECORD_1(WB_RECORD_1(__VA_ARGS__)))
#define WB_RECORD_1(...) __VA_ARGS__

template <class Record> constexpr std::size_t record_size() noexcept {
  std::size_t size = 0;
  Record record;
  Record::each(record, [&](const auto& field, FieldNote) { size += sizeof field; });
  return size;
}

// Of the field in the record.
template <class Record, class T> constexpr std::size_t offset_of(T Record::*member) noexcept {
  std::size_t at = 0, found = 0;
  const Record record;
  Record::each(record, [&](const auto& field, FieldNote) {
    if constexpr (std::is_same_v<decltype(field), const T&>)
      if (&field == &(record.*member)) found = at;
    at += sizeof field;
  });
  return found;
}

template <std::size_t size>
using Bits = std::conditional_t<
    size == 1, std::uint8_t,
    std::conditional_t<size == 2, std::uint16_t, std::conditional_t<size == 4, std::uint32_t, std::uint64_t>>>;

template <class T> const std::byte* load_field(T& field, const std::byte* from) noexcept {
  if constexpr (std::is_array_v<T>) {
    for (auto& element : field) from = load_field(element, from);
    return from;
  } else {
    field = std::bit_cast<T>(load_le<Bits<sizeof(T)>>(from));
    return from + sizeof(T);
  }
}
template <class T> void append_field(std::string& to, const T& field) {
  if constexpr (std::is_array_v<T>) {
    for (const auto& element : field) append_field(to, element);
  } else {
    append_le(to, std::bit_cast<Bits<sizeof(T)>>(field));
  }
}

template <class... T> void append_fields(std::string& to, const T&... fields) { (append_field(to, fields), ...); }

// The caller has record_size<Record>() bytes at `from`.
template <class Record> Record load_record(const void* from) noexcept {
  Record record;
  const auto* at = static_cast<const std::byte*>(from);
  Record::each(record, [&](auto& field, FieldNote) { at = load_field(field, at); });
  return record;
}
template <class Record> void append_record(std::string& to, const Record& record) {
  Record::each(record, [&](const auto& field, FieldNote) { append_field(to, field); });
}
template <class Record> std::string store_record(const Record& record) {
  std::string out;
  append_record(out, record);
  return out;
}

template <class Record> std::vector<FieldRow> rows_of() {
  std::vector<FieldRow> rows;
  const Record record;
  Record::each(record, [&](const auto& field, FieldNote note) {
    using T = std::remove_cvref_t<decltype(field)>;
    using Element = std::remove_extent_t<T>;
    constexpr bool list = std::is_array_v<T> && sizeof(Element) > 1;
    constexpr FieldForm form = std::same_as<Element, char>     ? FieldForm::text
                               : std::floating_point<Element>  ? FieldForm::real
                               : std::signed_integral<Element> ? FieldForm::signed_number
                                                               : FieldForm::number;
    rows.push_back({note.name, list ? sizeof(Element) : sizeof(T), note.form.value_or(form),
                    list ? std::extent_v<T> : std::size_t{0}});
  });
  return rows;
}

}  // namespace weighbridge::base

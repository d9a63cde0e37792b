// SPDX-License-Identifier: Apache-2.0
// Keeps the spans that are asked for, and finds those in JSON and CBOR with the readers of the grammars.
#include "core/reading/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/endian.h"
#include "base/utf8.h"
#include "core/model/words.h"
#include "wire/cbor_reader.h"
#include "wire/json_reader.h"

namespace weighbridge::core {
namespace {

constexpr std::size_t kLongestValue = 200;  // characters
// More spans than requested, so that outer ones are kept even if they are reported last.
constexpr std::uint64_t kAround = 1000;

std::string text_value(std::string_view bytes) {
  if (base::is_utf8(bytes)) return excerpt(bytes, kLongestValue);
  return bytes_text(bytes.size()) + " that are not UTF-8";
}

using base::FieldForm;

std::string value_of(const base::FieldRow& row, std::string_view bytes) {
  std::uint64_t number = 0;
  if (row.size <= 8)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  switch (row.form) {
    case FieldForm::number: return row.size <= 8 ? std::to_string(number) : std::string();
    case FieldForm::signed_number: {
      const std::size_t unused = 64 - 8 * row.size;
      return std::to_string(std::bit_cast<std::int64_t>(number << unused) >> unused);
    }
    case FieldForm::real:
      return row.size == 4 ? fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(number)))
                           : fmt::format("{}", std::bit_cast<double>(number));
    case FieldForm::text: return text_value(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
    case FieldForm::hex: return fmt::format("0x{:0{}x}", number, 2 * row.size);
  }
  return {};
}

// A text within the tree, at an offset in the file.
struct Branch {
  std::string_view text;
  std::uint64_t at = 0;
  std::uint64_t place(std::string_view part) const noexcept {
    return at + static_cast<std::uint64_t>(part.data() - text.data());
  }
};

class JsonTree {
 public:
  explicit JsonTree(Spans& spans) : spans_(spans) {}

  // What is in the value, which is all of the branch besides white space.
  void walk(Branch branch) {
    wire::JsonReader in(branch.text);
    std::string_view raw;
    if (in.peek() == wire::JsonKind::object) {
      in.enter_object();
      std::string scratch;
      for (wire::JsonString key; in.next_key(key);) {
        const std::string name(wire::json_text(key, scratch));
        if (!in.skip_value(raw)) return;
        add(branch, branch.at + key.offset - 1, raw, name);
      }
    } else if (in.peek() == wire::JsonKind::array) {
      in.enter_array();
      for (std::uint64_t i = 0; in.next_element(); ++i) {
        if (!in.skip_value(raw)) return;
        if (const std::uint64_t at = branch.place(raw); spans_.wanted(at, at + raw.size()))
          add(branch, at, raw, fmt::format("[{}]", i));
      }
    }
  }

 private:
  void add(const Branch& branch, std::uint64_t begin, std::string_view raw, std::string_view name) {
    const std::uint64_t at = branch.place(raw), end = at + raw.size();
    if (!spans_.wanted(begin, end)) return;
    const bool holds = raw.starts_with('{') || raw.starts_with('[');
    // A short list is easier to read as it is.
    const bool shown = !holds || (raw.starts_with('[') && raw.size() <= kLongestValue);
    spans_.add(Span::Kind::field, begin, end, name, shown ? excerpt(raw, kLongestValue) : std::string());
    if (holds) walk({raw, at});
  }
  Spans& spans_;
};

class CborTree {
 public:
  explicit CborTree(Spans& spans) : spans_(spans) {}

  void walk(Branch branch) {
    wire::CborReader in(branch.text);
    std::string_view key, item;
    if (in.peek() == wire::CborKind::map) {
      in.enter_map();
      while (in.next_entry() && in.skip_item(key) && in.skip_item(item))
        if (spans_.wanted(branch.place(key), branch.place(item) + item.size()))
          add(branch, branch.place(key), item, shown(key));
    } else if (in.peek() == wire::CborKind::array) {
      in.enter_array();
      for (std::uint64_t i = 0; in.next_element() && in.skip_item(item); ++i)
        if (const std::uint64_t at = branch.place(item); spans_.wanted(at, at + item.size()))
          add(branch, at, item, fmt::format("[{}]", i));
    }
  }

 private:
  void add(const Branch& branch, std::uint64_t begin, std::string_view item, std::string_view name) {
    const std::uint64_t at = branch.place(item);
    spans_.add(Span::Kind::field, begin, at + item.size(), name, shown(item));
    walk({item, at});
  }

  // A scalar as text; what holds others, by its size.
  static std::string shown(std::string_view item) {
    wire::CborReader in(item);
    wire::CborInteger integer;
    wire::CborString text;
    wire::CborFloat real;
    bool flag = false;
    switch (in.peek()) {
      case wire::CborKind::unsigned_integer:
      case wire::CborKind::negative_integer:
        if (!in.read_integer(integer)) return {};
        if (const auto value = integer.as_i64()) return std::to_string(*value);
        return (integer.negative ? "-1 - " : "") + std::to_string(integer.argument);
      case wire::CborKind::text: {
        std::string scratch;
        return in.read_text(text) ? excerpt(wire::cbor_text(text, scratch), kLongestValue) : std::string();
      }
      case wire::CborKind::bytes: return in.read_bytes(text) ? bytes_text(text.raw.size()) : std::string();
      case wire::CborKind::floating: return in.read_float(real) ? fmt::format("{}", real.value) : std::string();
      case wire::CborKind::boolean: return in.read_bool(flag) ? (flag ? "true" : "false") : std::string();
      case wire::CborKind::null: return "null";
      case wire::CborKind::array: return numbers(item);
      default: return {};
    }
  }
  // A short list of numbers, as shapes are; else nothing.
  static std::string numbers(std::string_view item) {
    wire::CborReader in(item);
    std::string out = "[";
    in.enter_array();
    while (in.next_element()) {
      std::uint64_t number = 0;
      if (!in.read_u64(number) || out.size() > kLongestValue) return {};
      out += (out.size() > 1 ? ", " : "") + std::to_string(number);
    }
    return out + "]";
  }
  Spans& spans_;
};

}  // namespace

void Spans::add(Span::Kind kind, std::uint64_t begin, std::uint64_t end, std::string_view what, std::string value) {
  if (!wanted(begin, end)) return;
  if (all_.size() >= maximum_ + kAround) {
    ++left_out_;
    return;
  }
  all_.push_back(
      {kind, begin, end - begin, base::is_utf8(what) ? std::string(what) : text_value(what), std::move(value)});
}

void Spans::add_fields(std::uint64_t at, std::string_view rest, std::span<const base::FieldRow> rows) {
  for (const base::FieldRow& row : rows)
    for (std::size_t i = 0; i < std::max<std::size_t>(row.count, 1); ++i) {
      if (rest.size() < row.size) return;
      if (wanted(at, at + row.size))
        add(Span::Kind::field, at, at + row.size, row.count == 0 ? row.name : fmt::format("{}[{}]", row.name, i),
            value_of(row, rest.substr(0, row.size)));
      at += row.size;
      rest.remove_prefix(row.size);
    }
}

void Spans::add_tree(Grammar grammar, Span::Kind kind, std::string_view what, std::uint64_t at, std::string_view text) {
  add(kind, at, at + text.size(), what, grammar == Grammar::json ? "JSON" : "CBOR");
  if (grammar == Grammar::json)
    JsonTree(*this).walk({text, at});
  else
    CborTree(*this).walk({text, at});
}

std::vector<Span> Spans::take() {
  std::stable_sort(all_.begin(), all_.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.offset, b.size, a.kind) < std::tuple(b.offset, a.size, b.kind);
  });
  all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  if (all_.size() > maximum_) {
    // Those around the beginning of the range are the most useful.
    std::stable_partition(all_.begin(), all_.end(), [&](const Span& span) { return span.offset <= begin_; });
    left_out_ += all_.size() - maximum_;
    all_.resize(static_cast<std::size_t>(maximum_));
  }
  return std::move(all_);
}

}  // namespace weighbridge::core

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Metadata values in the container's own types. Owns Value, Attributes, Texts.
///
/// A value keeps its width (a CBOR f32 does not become an f64, a u64 keeps its 64 bits), so it can be written back
/// exactly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/dtype.h"

namespace weighbridge {

/// Many strings in two allocations: vocabularies, string arrays. An entry may hold any bytes.
struct Texts {
  std::string blob;                                          ///< all of them, end to end
  std::vector<std::uint64_t> ends;                           ///< where each one ends in `blob`
  std::size_t size() const noexcept { return ends.size(); }  ///< texts
  /// Text i, which must be there.
  std::string_view operator[](std::size_t i) const noexcept {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(blob).substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(ends[i] - begin));
  }
  /// Appends a copy.
  void push_back(std::string_view text) {
    blob.append(text);
    ends.push_back(blob.size());
  }
  bool operator==(const Texts&) const = default;
};

/// One metadata value. Immutable; a copy is one reference count.
class Value {
 public:
  /// What it holds. `numbers` and `texts` are arrays of one type; `foreign` is an item that the library stores without
  /// interpreting it.
  enum class Kind : std::uint8_t { null, boolean, integer, real, text, bytes, list, map, numbers, texts, foreign };
  using Entry = std::pair<std::string, Value>;  ///< key and value

  Value() noexcept = default;                                    ///< null
  static Value boolean(bool);                                    ///< of kind boolean
  static Value integer(std::int64_t, DType width = DType::i64);  ///< Error{misuse} if it does not fit the width
  /// Likewise. A CBOR integer below -2^63 fits no DType and is `foreign` instead.
  static Value integer(std::uint64_t, DType width = DType::u64);
  /// width f16, f32 or f64; Error{misuse} if it would change the value
  static Value real(double, DType width = DType::f64);
  static Value text(std::string);                                     ///< UTF-8
  static Value bytes(std::vector<std::byte>);                         ///< of kind bytes
  static Value list(std::vector<Value>);                              ///< of any kinds, mixed too
  static Value map(std::vector<Entry>);                               ///< keys unique; order is kept
  static Value numbers(DType, std::vector<std::byte> little_endian);  ///< an array of one dtype, packed
  static Value texts(Texts);                                          ///< an array of texts
  /// One item of `grammar` ("cbor"), verbatim.
  static Value foreign(std::string grammar, std::vector<std::byte> verbatim);

  Kind kind() const noexcept;  ///< what it holds
  /// of integer, real, numbers: declared width, or i64/u64/f64 if the container has none; else unknown
  DType type() const noexcept;
  /// Exact or nullopt: no rounding, no truncation. A canonical decimal text counts as its number, because EMBD and
  /// safetensors have only text; "true" and "false" count as booleans.
  std::optional<bool> as_bool() const noexcept;
  std::optional<std::int64_t> as_i64() const noexcept;       ///< likewise
  std::optional<std::uint64_t> as_u64() const noexcept;      ///< likewise
  std::optional<double> as_f64() const noexcept;             ///< likewise
  std::optional<std::string_view> as_text() const noexcept;  ///< kind text only
  std::span<const Value> list() const noexcept;              ///< empty unless list
  std::span<const Entry> map() const noexcept;               ///< empty unless map; file order, unique keys
  /// of bytes, numbers (little-endian), and foreign (the item verbatim)
  std::span<const std::byte> bytes() const noexcept;
  const Texts* texts() const noexcept;        ///< null unless texts
  std::string_view grammar() const noexcept;  ///< foreign: "cbor", ...
  /// The canonical text: integers in decimal, reals as the shortest decimal that reads back to the same bits of type(),
  /// "true"/"false", text as it is, lists and maps as compact JSON, bytes as base64. Formats that hold only text store
  /// this.
  std::string to_text() const;
  /// Same kind, type and content; reals by bits. The order of a map's keys does not count.
  bool operator==(const Value&) const;

 private:
  struct Rep;
  explicit Value(std::shared_ptr<const Rep> rep) noexcept : rep_(std::move(rep)) {}
  std::shared_ptr<const Rep> rep_;
};

namespace core {
class Access;
}

/// Items of a Model, in order. Keeps them alive, so it may outlive the Model.
template <class T> class Shared {
 public:
  Shared() noexcept = default;                                               ///< no items
  const T* data() const noexcept { return all_ ? all_->data() : nullptr; }   ///< valid while any copy of this lives
  const T* begin() const noexcept { return data(); }                         ///< likewise
  const T* end() const noexcept { return begin() + size(); }                 ///< likewise
  bool empty() const noexcept { return size() == 0; }                        ///< no items
  std::size_t size() const noexcept { return all_ ? all_->size() : 0; }      ///< items
  const T& operator[](std::size_t i) const& noexcept { return (*all_)[i]; }  ///< item i, which must be there
  T operator[](std::size_t i) const&& { return (*all_)[i]; }                 ///< a copy, since this is a temporary

 private:
  friend class core::Access;
  explicit Shared(std::shared_ptr<const std::vector<T>> all) noexcept : all_(std::move(all)) {}
  std::shared_ptr<const std::vector<T>> all_;
};

/// The value of a key; null if there is none. Linear search.
const Value* find(std::span<const Value::Entry> entries, std::string_view key) noexcept;

/// Keys and values in file order, keys unique. User metadata has its own keys; keys of header fields begin with
/// "<format>.".
class Attributes : public Shared<Value::Entry> {
 public:
  Attributes() noexcept = default;  ///< no entries
  /// Null if there is no such key. Valid as long as this or the model lives. Logarithmic.
  const Value* find(std::string_view key) const& noexcept;
  const Value* find(std::string_view key) const&& = delete;

 private:
  friend class core::Access;
  Attributes(Shared<Value::Entry> all, const std::vector<std::uint32_t>& by_key) noexcept
      : Shared(std::move(all)), by_key_(&by_key) {}
  const std::vector<std::uint32_t>* by_key_ = nullptr;  // of the same model; empty if there are few entries
};

}  // namespace weighbridge

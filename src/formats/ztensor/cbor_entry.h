// SPDX-License-Identifier: Apache-2.0
// What a walker has read about one tensor of a CBOR index, before the checks: the fields that all generations of
// zTensor share. One entry is reused for all tensors, so that a plain tensor allocates nothing.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weighbridge/dtype.h"
#include "weighbridge/model.h"
#include "weighbridge/value.h"

namespace weighbridge::ztensor {

// Texts are slices of the index, or of `texts`. `at` is an offset in the file.
struct CborEntry {
  CborEntry() noexcept {}  // not defaulted: value-initialization would zero the whole object first
  std::string_view name;
  std::uint64_t at = 0;
  bool has_name = true, has_shape = false, broken = false;
  std::array<std::uint64_t, 64> dims;
  std::size_t rank = 0;
  std::vector<Value::Entry> attributes;
  std::deque<std::string> texts;  // texts of indefinite length, joined

  void clear() {
    has_shape = broken = false;
    rank = 0;
    attributes.clear();
    if (!texts.empty()) texts.clear();
  }
  std::span<const std::uint64_t> shape() const noexcept { return {dims.data(), rank}; }
  std::optional<std::string_view> known_name() const noexcept { return has_name ? std::optional(name) : std::nullopt; }
};

// A value of a part's key `type`: the logical dtype, and the storage dtype that goes with it.
struct LogicalType {
  std::string_view type;
  DType logical, storage;
};

// A part of an object of zTensor 1.x or 2, as the manifest states it.
struct CborPart {
  CborPart() noexcept {}  // as above
  std::string_view role, dtype, type, encoding, digest;
  std::uint64_t offset = 0, length = 0, decoded_length = 0, at = 0;
  bool has_dtype = false, has_type = false, has_decoded = false, has_digest = false;
  std::uint32_t first_extra = 0, extra_count = 0;  // in CborObject::part_extras
  // Set by the checks.
  DType storage = DType::unknown, logical = DType::unknown;  // logical is unknown if the type is
  std::uint64_t size = 0;                                    // decoded bytes, once known
  bool tensor_shape = false;                                 // the part has the object's shape; if false, dims
  std::array<std::uint64_t, 2> dims{};
  std::uint8_t rank = 1;

  std::string_view type_name() const noexcept { return has_type ? type : dtype; }
  Shape shape(const CborEntry& of) const noexcept { return tensor_shape ? of.shape() : Shape(dims.data(), rank); }
};

template <class PartOf> struct CborObject : CborEntry {
  bool has_layout = false, has_parts = false;
  std::string_view layout;
  std::vector<PartOf> parts;
  std::vector<Value::Entry> extra, part_extras;

  CborObject() noexcept {}
  void clear() {
    CborEntry::clear();
    has_layout = has_parts = false;
    layout = {};
    parts.clear();
    extra.clear();
    part_extras.clear();
  }
  PartOf* find(std::string_view role) noexcept {
    for (PartOf& part : parts)
      if (part.role == role) return &part;
    return nullptr;
  }
  const PartOf* find(std::string_view role) const noexcept {
    for (const PartOf& part : parts)
      if (part.role == role) return &part;
    return nullptr;
  }
};

}  // namespace weighbridge::ztensor

// SPDX-License-Identifier: Apache-2.0
// One tensor's map as it is read, before it is checked. One Entry is reused for all tensors, so that a plain one
// allocates nothing.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/ztensor0/layout.h"
#include "weighbridge/value.h"

namespace weighbridge::ztensor0 {

// Texts are slices of the index, or of Entry::texts. `at` is an offset in the file.
struct Entry {
  std::string_view name, dtype, encoding, endianness, checksum;
  std::string_view layout;  // one of the three known texts; any other value becomes an attribute
  std::uint64_t at = 0;
  std::uint64_t offset = 0, size = 0;
  bool has_name = false, has_offset = false, has_size = false, has_dtype = false, has_shape = false,
       has_encoding = false, has_endianness = false, has_checksum = false, has_layout = false;
  bool broken = false;
  std::array<std::uint64_t, kMaxRank> dims;
  std::size_t rank = 0;
  std::vector<Value::Entry> attributes;
  std::deque<std::string> texts;  // texts of indefinite length, joined

  Entry() noexcept {}  // not defaulted: value-initialization would zero the whole object first
  void clear() {
    name = endianness = checksum = {};
    layout = kDense;
    has_name = has_offset = has_size = has_dtype = has_shape = has_encoding = has_endianness = has_checksum =
        has_layout = broken = false;
    rank = 0;
    attributes.clear();
    if (!texts.empty()) texts.clear();
  }
  std::span<const std::uint64_t> shape() const noexcept { return {dims.data(), rank}; }
  std::optional<std::string_view> known_name() const noexcept { return has_name ? std::optional(name) : std::nullopt; }
};

}  // namespace weighbridge::ztensor0

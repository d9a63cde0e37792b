// SPDX-License-Identifier: Apache-2.0
// One object of the manifest as it is read, before it is checked. One Entry is reused for all objects, so that a plain
// object allocates nothing.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/ztensor1/layout.h"
#include "weighbridge/value.h"

namespace weighbridge::ztensor1 {

// A component as the manifest states it. Texts are slices of the manifest, or of Entry::texts. `at` is an offset in the
// file.
struct Component {
  Component() noexcept {}  // not defaulted: value-initialization would zero the whole object first
  std::string_view role, dtype, type, encoding, digest;
  std::uint64_t offset = 0, length = 0, uncompressed_length = 0;
  std::uint64_t at = 0;
  bool has_dtype = false, has_offset = false, has_length = false, has_type = false, has_digest = false,
       has_uncompressed_length = false;
  std::uint32_t first_extra = 0, extra_count = 0;  // in Entry::component_extras
  // Set while it is checked.
  DType logical = DType::unknown;  // unknown if the dtype or the type is
  DType storage = DType::unknown;
  std::uint64_t size = 0;     // logical bytes, once known
  bool undecodable = false;   // zstd whose decoded size is not stated
  bool tensor_shape = false;  // the part has the tensor's shape; if false, part_dims
  std::array<std::uint64_t, 2> part_dims{};
  std::uint8_t part_rank = 1;
};

struct Entry {
  std::string_view name;
  std::uint64_t at = 0;
  bool has_shape = false, has_format = false, has_components = false;
  bool broken = false;
  std::array<std::uint64_t, kMaxRank> dims;
  std::size_t rank = 0;
  std::string_view format;
  std::vector<Component> components;
  std::vector<Value::Entry> attributes, extra, component_extras;
  std::deque<std::string> texts;  // texts of indefinite length, joined

  void clear() {
    has_shape = has_format = has_components = broken = false;
    rank = 0;
    format = {};
    components.clear();
    attributes.clear();
    extra.clear();
    component_extras.clear();
    if (!texts.empty()) texts.clear();
  }
  std::span<const std::uint64_t> shape() const noexcept { return {dims.data(), rank}; }
  Component* find(std::string_view role) noexcept {
    for (Component& c : components)
      if (c.role == role) return &c;
    return nullptr;
  }
};

}  // namespace weighbridge::ztensor1

// SPDX-License-Identifier: Apache-2.0
// One object of the manifest while it is read: what its keys said, before it is judged. One Entry serves all objects,
// so that a plain object allocates nothing.
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

// A component as the manifest has it. Texts are slices of the manifest, or of Entry::texts. `at` are offsets in the
// file.
struct Component {
  Component() noexcept {}  // not defaulted: a value-initialized one would be zeroed whole before its members are set
  std::string_view role, dtype, type, encoding, digest;
  std::uint64_t offset = 0, length = 0, uncompressed_length = 0;
  std::uint64_t at = 0;
  bool has_dtype = false, has_offset = false, has_length = false, has_type = false, has_digest = false,
       has_uncompressed_length = false;
  std::uint32_t first_extra = 0, extra_count = 0;  // in Entry::component_extras
  // Made while it is judged.
  DType logical = DType::unknown;  // unknown: the dtype or the type is
  DType storage = DType::unknown;
  std::uint64_t size = 0;     // logical bytes, once they are known
  bool undecodable = false;   // zstd of a size that nothing states
  bool tensor_shape = false;  // the part has the shape of the tensor, else part_dims
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
  std::deque<std::string> texts;  // of indefinite length, put together

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

// SPDX-License-Identifier: Apache-2.0
// One tensor's map as it is read, before it is checked.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/cbor_entry.h"
#include "formats/ztensor0/layout.h"

namespace weighbridge::ztensor0 {

struct Entry : core::CborEntry {
  std::string_view dtype, encoding, endianness, checksum;
  std::string_view layout;  // one of the three known texts; any other value becomes an attribute
  std::uint64_t offset = 0, size = 0;
  bool has_offset = false, has_size = false, has_dtype = false, has_encoding = false, has_endianness = false,
       has_checksum = false, has_layout = false;

  Entry() noexcept {}  // as the base's
  void clear() {
    CborEntry::clear();
    name = endianness = checksum = {};
    layout = kDense;
    has_name = has_offset = has_size = has_dtype = has_encoding = has_endianness = has_checksum = has_layout = false;
  }
};

}  // namespace weighbridge::ztensor0

// SPDX-License-Identifier: Apache-2.0
// The index of a file that is being written: everything but offsets, sizes and checksums is known when it is planned.
// Owns the order of keys (reading Z6); leaves what goes into the file to write.cc.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"

namespace weighbridge::ztensor0 {

struct OutEntry {
  Tensor from;  // name, shape
  Part part;    // of the input: what its dtype, encoding and checksum are called, where the bytes go over verbatim
  std::uint32_t payload = 0;
  DType dtype = DType::unknown;       // unknown: as from.type_name() says
  Encoding encoding = Encoding::raw;  // unknown: as part.encoding_name() says
  std::string_view layout;            // empty: none is written
  bool keep_checksum = false, keep_extra = false;
  std::string attributes;  // custom fields: keys and values, one after the other
  std::uint64_t attribute_count = 0;
};

struct OutIndex {
  std::vector<OutEntry> entries;
  std::shared_ptr<const void> keep;

  // The array and its size in bytes. stored[i] belongs to payload i.
  std::string tail(std::span<const core::Stored>) const;
};

}  // namespace weighbridge::ztensor0

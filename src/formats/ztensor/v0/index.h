// SPDX-License-Identifier: Apache-2.0
// The index of a file, both ways. write.cc decides what goes into it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/draft.h"
#include "core/reading/findings.h"
#include "core/reading/format.h"
#include "core/writing/layout.h"
#include "weighbridge/context.h"
#include "weighbridge/source.h"

namespace weighbridge::ztensor0 {

// The CBOR of the index, without the size that follows it. nullopt if it cannot be read, which has been reported.
// Throws Error{io}, Stop.
std::optional<core::HeaderMemory> read_index(const Source&, const Context&, core::Findings&);

// The index of a file to write. The plan knows everything except offsets, sizes and checksums. Decides the order of
// keys (reading Z6); write.cc decides what goes into the file.

struct OutEntry {
  Tensor from;  // name, shape
  Part part;    // of the input; gives the names of dtype, encoding and checksum if bytes are copied verbatim
  std::uint32_t payload = 0;
  DType dtype = DType::unknown;       // unknown: from.type_name()
  Encoding encoding = Encoding::raw;  // unknown: part.encoding_name()
  std::string_view layout;            // empty: the field is not written
  bool keep_checksum = false, keep_extra = false, big_endian = false;
  std::string attributes;  // custom fields: alternating keys and values
  std::uint64_t attribute_count = 0;
};

struct OutIndex {
  std::vector<OutEntry> entries;
  std::shared_ptr<const void> keep;

  // The index array and its size in bytes. stored[i] belongs to payload i.
  std::string tail(std::span<const core::Stored>) const;
};

}  // namespace weighbridge::ztensor0
